#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/policy_options.h"

/// Policies and their thresholds by name. The job file, its documentation, REST and `muster
/// simulate` all read them here.
namespace muster {

struct KnownPolicy {
  std::string_view name;
  std::string_view summary;
  /// It acts on nodes that live, at a pace that the job file bounds; false: it only repairs.
  bool intervenes = false;
};
/// In the order in which they are heard.
std::span<const KnownPolicy> KnownPolicies();

/// One member of PolicyOptions.
struct Threshold {
  using Place = std::variant<double*, uint32_t*, uint64_t*, std::chrono::seconds*,
                             std::chrono::microseconds*>;
  /// As a field of the job file: a number, a whole number or whole seconds, by its type.
  struct InFile {
    std::string path;  // below spec.scaler: "hang.timeout"; empty: it is in no job file
    double min = 0;    // in seconds, where it is a time
    double max = 0;
    std::string text;
  };

  std::string_view policy;
  /// "silence_min_s": the last word is the unit; without one it is a ratio.
  std::string_view shown;
  InFile file;
  Place (*place)(PolicyOptions* options) = nullptr;
};
/// In the order of the job file's documentation.
const std::vector<Threshold>& Thresholds();

/// In the unit that `shown` ends with.
double ValueAt(const Threshold::Place& place);

}  // namespace muster
