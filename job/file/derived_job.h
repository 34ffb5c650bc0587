#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/words/types.h"

/// The job files that `muster predict` and `muster evaluate` make from that of a training. Pure.
namespace muster {

struct DerivedJob {
  /// kPredict or kEvaluate: only these datasets stay.
  DatasetMode mode = DatasetMode::kPredict;
  /// A folder that `muster export` wrote; it is made absolute.
  std::string weights;
  /// If empty, it is that of the training with "-predict" or "-evaluate" behind it.
  std::string state_directory;
};

/// The text of a job with the same trainer, which trains nothing and starts with these weights.
/// Other fields stay as they are, without comments. `name` stands for the file in errors.
/// kInvalidArgument if `text` is no YAML, or has no such dataset; what else is wrong is left to
/// whoever parses the result.
absl::StatusOr<std::string> DeriveJob(const std::string& text, const std::string& name,
                                      const DerivedJob& derived);

}  // namespace muster
