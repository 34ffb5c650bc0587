#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster {

/// Collects names with the same reason, so that each reason is said once. Pure.
class Reasons {
 public:
  void Add(const std::string& name, const std::string& reason);
  /// {"worker-0, worker-2, worker-3 and 2 more", reason}, in the order in which the reasons were
  /// added.
  std::vector<std::pair<std::string, std::string>> All() const;

 private:
  struct Reason {
    std::string text;
    std::vector<std::string> names;
  };
  std::vector<Reason> reasons_;
};

}  // namespace muster
