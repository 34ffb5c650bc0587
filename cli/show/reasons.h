#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster {

/// Names by what they have in common, so that a line is said once and not for each of them. Pure.
class Reasons {
 public:
  void Add(const std::string& name, const std::string& reason);
  /// {"worker-0, worker-2, worker-3 and 2 more", reason}, in the order in which the reasons came.
  std::vector<std::pair<std::string, std::string>> All() const;

 private:
  struct Reason {
    std::string text;
    std::vector<std::string> names;
  };
  std::vector<Reason> reasons_;
};

}  // namespace muster
