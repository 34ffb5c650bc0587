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

/// Minimises |a x - b| subject to x >= 0. `a`: [rows, columns] row-major, rows = b.size(). For
/// small dense problems (a few columns); every least-squares step is a QR factorisation of the
/// columns in use, scaled to length 1. A column of zeros, and one that depends on others, gets 0.
/// Errors: InvalidArgument for sizes that do not fit or entries that are not finite; Internal when
/// it does not end within 10 * columns exchanges (it is finite in exact arithmetic).
/// Source: C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23,
/// algorithm NNLS (23.10).
absl::StatusOr<NnlsSolution> SolveNnls(std::span<const double> a, size_t columns,
                                       std::span<const double> b);

}  // namespace muster::scaler
