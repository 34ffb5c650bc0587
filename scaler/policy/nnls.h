#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::scaler {

/// A least-squares solution without negative entries.
struct NnlsSolution {
  std::vector<double> x;
  double residual_norm = 0;  // |a x - b|, Euclidean
};

/// Minimises |a x - b| subject to x >= 0. `a`: [rows, columns] row-major, rows = b.size(). It is
/// meant for small dense problems (a few columns). Each least-squares step is a QR factorisation of
/// the columns in use, scaled to length 1. A column gets 0 if it is all zeros or depends on others.
/// Errors: InvalidArgument if the sizes do not fit or an entry is not finite; Internal if it needs
/// more than 10 * columns exchanges (it is finite in exact arithmetic).
/// Source: C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23,
/// algorithm NNLS (23.10).
absl::StatusOr<NnlsSolution> SolveNnls(std::span<const double> a, size_t columns,
                                       std::span<const double> b);

}  // namespace muster::scaler
