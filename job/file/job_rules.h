#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "job/job_spec.h"

namespace muster::job_file {

/// A rule between fields that the job breaks.
struct BrokenRule {
  /// The fields of the rule. The error is shown at the first one.
  std::vector<std::string> paths;
  std::string what;
};

/// Checks the rules that need more than one field: at least one training dataset, unique names,
/// intervals that fit together. Requires: every field is within its own bounds. CheckSource checks
/// the rules of a dataset's source.
std::vector<BrokenRule> CheckJobRules(const JobSpec& job);

}  // namespace muster::job_file
