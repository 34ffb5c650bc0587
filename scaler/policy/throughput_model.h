#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::scaler {

/// How a job's rate depends on how many workers it has: rate(n) = n / (a + b n + c n^2), all three
/// coefficients at least 0. Per record of one worker: `a` is what it costs by itself, `b` what
/// grows with each other worker at the servers they share, `c` what grows faster than that: workers
/// that take each other's cores and cache, after which more of them are slower. Source: the form of
/// Y. Peng et al., "Optimus", EuroSys 2018, section 3.2 (asynchronous training, a fixed number of
/// servers), with a term for workers on shared machines.
class ThroughputModel {
 public:
  /// Fits to measured rates (records/s > 0) by workers (> 0), by non-negative least squares of
  /// relative errors. Errors: FailedPrecondition with fewer than two counts; those of SolveNnls.
  static absl::StatusOr<ThroughputModel> Fit(const std::map<uint32_t, double>& rates);

  double Rate(uint32_t workers) const;
  /// The root mean square of the relative errors at the counts it was fitted to.
  double relative_error() const { return relative_error_; }

 private:
  double a_ = 0, b_ = 0, c_ = 0;  // seconds per record
  double relative_error_ = 0;
};

}  // namespace muster::scaler
