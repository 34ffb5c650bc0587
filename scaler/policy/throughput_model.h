#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::scaler {

/// How a job's rate depends on its number of workers: rate(n) = n / (a + b n + c n^2), where no
/// coefficient is negative. They are costs per record of one worker. `a` is its own cost. `b` is
/// the cost that grows with each other worker, at the servers that they share. `c` is a cost that
/// grows faster: workers take each other's cores and cache, so from some number on, more workers
/// are slower. Source: the form of Y. Peng et al., "Optimus", EuroSys 2018, section 3.2
/// (asynchronous training, a fixed number of servers), with a term for workers on shared machines.
class ThroughputModel {
 public:
  /// Fits the model to measured rates (records/s > 0) by numbers of workers (> 0). It minimises the
  /// squares of the relative errors, with coefficients that are not negative. Errors:
  /// FailedPrecondition with fewer than two numbers of workers; those of SolveNnls.
  static absl::StatusOr<ThroughputModel> Fit(const std::map<uint32_t, double>& rates);

  double Rate(uint32_t workers) const;
  /// The root mean square of the relative errors at the points that it was fitted to.
  double relative_error() const { return relative_error_; }

 private:
  double a_ = 0, b_ = 0, c_ = 0;  // seconds per record
  double relative_error_ = 0;
};

}  // namespace muster::scaler
