#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/policy_options.h"

/// The names of policies and their thresholds. The job file, its documentation, REST and `muster
/// simulate` all use them.
namespace muster {

struct KnownPolicy {
  std::string_view name;
  std::string_view summary;
  /// True if it acts on nodes that live; the job file limits how often. If false, it only repairs.
  bool intervenes = false;
};
/// All policies, in the order of their priority.
std::span<const KnownPolicy> KnownPolicies();

/// One member of PolicyOptions.
struct Threshold {
  using Place = std::variant<double*, uint32_t*, uint64_t*, std::chrono::seconds*,
                             std::chrono::microseconds*>;
  /// The threshold as a field of the job file. By its type, it is a number, a whole number or whole
  /// seconds.
  struct InFile {
    std::string path;  // below spec.scaler: "hang.timeout"; empty: no job file can set it
    double min = 0;    // in seconds if it is a time
    double max = 0;
    std::string text;
  };

  std::string_view policy;
  /// "silence_min_s". The last word is the unit; without one, the value is a ratio.
  std::string_view shown;
  InFile file;
  Place (*place)(PolicyOptions* options) = nullptr;
};
/// All thresholds, in the order of the job file's documentation.
const std::vector<Threshold>& Thresholds();

/// The value in the unit at the end of `shown`.
double ValueAt(const Threshold::Place& place);

}  // namespace muster
