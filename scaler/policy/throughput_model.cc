#include "scaler/policy/throughput_model.h"

#include <cmath>

#include "base/status.h"
#include "scaler/policy/nnls.h"

namespace muster::scaler {

absl::StatusOr<ThroughputModel> ThroughputModel::Fit(const std::map<uint32_t, double>& rates) {
  if (rates.size() < 2) {
    return absl::FailedPreconditionError(
        fmt::format("rates at {} worker counts; two are needed", rates.size()));
  }
  // The model is 1 / rate = a / n + b + c n. Every row is multiplied by its rate. So the right side
  // is 1, and an error of a tenth has the same weight at every count.
  std::vector<double> matrix;
  std::vector<double> ones;
  for (const auto& [workers, rate] : rates) {
    const double n = workers;
    matrix.insert(matrix.end(), {rate / n, rate, rate * n});
    ones.push_back(1);
  }
  MUSTER_ASSIGN_OR_RETURN(const NnlsSolution solution, SolveNnls(matrix, 3, ones));
  ThroughputModel model;
  model.a_ = solution.x[0];
  model.b_ = solution.x[1];
  model.c_ = solution.x[2];
  model.relative_error_ = solution.residual_norm / std::sqrt(static_cast<double>(ones.size()));
  return model;
}

double ThroughputModel::Rate(uint32_t workers) const {
  const double n = workers;
  const double seconds_per_record = workers == 0 ? 0 : a_ / n + b_ + c_ * n;
  return seconds_per_record > 0 ? 1 / seconds_per_record : 0;
}

}  // namespace muster::scaler
