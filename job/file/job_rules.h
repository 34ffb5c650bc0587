#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "job/job_spec.h"

namespace muster::job_file {

/// A rule between fields that a job breaks.
struct BrokenRule {
  /// The fields it is about; the error is shown at the first.
  std::vector<std::string> paths;
  std::string what;
};

/// The rules that no field can check alone: at least one training dataset, unique names, intervals
/// that fit each other. Every field is within its own bounds. Those of a dataset's source are
/// CheckSource's.
std::vector<BrokenRule> CheckJobRules(const JobSpec& job);

/// Refuses any address that is not "host:port" on loopback (127.0.0.0/8, [::1], localhost).
absl::Status CheckLoopbackAddress(std::string_view address);

}  // namespace muster::job_file
