#include "scaler/policy/nnls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/status.h"

namespace muster::scaler {
namespace {

/// Relative to columns of length 1 and a right side of length 1.
constexpr double kTolerance = 1e-10;

/// The problem with its columns scaled to length 1, in column-major order. It knows which columns
/// are in use. (The book calls them set P, and the others set Z.)
class Problem {
 public:
  Problem(std::span<const double> a, size_t columns, std::span<const double> b)
      : rows_(b.size()), b_(b.begin(), b.end()), used_(columns, false), x_(columns, 0.0) {
    for (size_t j = 0; j < columns; ++j) {
      std::vector<double> column(rows_);
      for (size_t i = 0; i < rows_; ++i) column[i] = a[i * columns + j];
      scale_.push_back(Norm(column));
      for (double& entry : column) entry /= scale_[j] > 0 ? scale_[j] : 1;
      columns_.push_back(std::move(column));
    }
    tolerance_ = kTolerance * Norm(b_);
  }

  static double Norm(const std::vector<double>& vector) {
    double sum = 0;
    for (double entry : vector) sum += entry * entry;
    return std::sqrt(sum);
  }

  std::vector<double> Residual() const {
    std::vector<double> residual = b_;
    for (size_t j = 0; j < x_.size(); ++j) {
      for (size_t i = 0; i < rows_; ++i) residual[i] -= columns_[j][i] * x_[j];
    }
    return residual;
  }

  /// The unused column along which the residual falls fastest, without those in `refused`. None at
  /// the optimum.
  std::optional<size_t> Steepest(const std::vector<bool>& refused) const {
    const std::vector<double> residual = Residual();
    std::optional<size_t> best;
    double best_gradient = tolerance_;
    for (size_t j = 0; j < x_.size(); ++j) {
      if (used_[j] || refused[j] || scale_[j] == 0) continue;
      double gradient = 0;
      for (size_t i = 0; i < rows_; ++i) gradient += columns_[j][i] * residual[i];
      if (gradient > best_gradient) {
        best = j;
        best_gradient = gradient;
      }
    }
    return best;
  }

  void Use(size_t j) { used_[j] = true; }
  void Drop(size_t j) { used_[j] = false, x_[j] = 0; }

  /// The unconstrained solution over the used columns, with 0 for the others. None if the used
  /// columns are linearly dependent. It uses Householder QR, then back substitution.
  std::optional<std::vector<double>> Unconstrained() const {
    std::vector<size_t> order;
    for (size_t j = 0; j < x_.size(); ++j) {
      if (used_[j]) order.push_back(j);
    }
    if (order.size() > rows_) return std::nullopt;
    std::vector<std::vector<double>> r;
    for (size_t j : order) r.push_back(columns_[j]);
    std::vector<double> y = b_;
    for (size_t k = 0; k < r.size(); ++k) {
      if (!Reflect(k, &r, &y)) return std::nullopt;
    }
    std::vector<double> z(x_.size(), 0.0);
    for (size_t k = r.size(); k-- > 0;) {
      double value = y[k];
      for (size_t l = k + 1; l < r.size(); ++l) value -= r[l][k] * z[order[l]];
      z[order[k]] = value / r[k][k];
    }
    return z;
  }

  /// Moves x towards `z` until an entry would become negative, and drops the columns that reached
  /// 0. Returns true if it reached `z` itself.
  bool MoveTowards(const std::vector<double>& z) {
    double share = 1;
    size_t blocking = x_.size();
    for (size_t j = 0; j < x_.size(); ++j) {
      if (!used_[j] || z[j] > 0) continue;
      const double to_zero = x_[j] / (x_[j] - z[j]);
      if (blocking == x_.size() || to_zero < share) {
        share = to_zero;
        blocking = j;
      }
    }
    if (blocking == x_.size()) {
      x_ = z;
      return true;
    }
    for (size_t j = 0; j < x_.size(); ++j) {
      if (!used_[j]) continue;
      x_[j] += share * (z[j] - x_[j]);
      if (j == blocking || x_[j] <= 0) Drop(j);
    }
    return false;
  }

  NnlsSolution Solution() const {
    NnlsSolution solution{.x = x_, .residual_norm = Norm(Residual())};
    for (size_t j = 0; j < x_.size(); ++j) {
      if (scale_[j] > 0) solution.x[j] /= scale_[j];
    }
    return solution;
  }

 private:
  /// Reflects column k so that it is 0 below row k, and reflects the later columns and `y` with it.
  /// False if only rounding errors are left of the column.
  bool Reflect(size_t k, std::vector<std::vector<double>>* r, std::vector<double>* y) const {
    std::vector<double> v((*r)[k].begin() + static_cast<ptrdiff_t>(k), (*r)[k].end());
    const double length = Norm(v);
    if (length < kTolerance) return false;
    v[0] += v[0] >= 0 ? length : -length;
    const double square = Norm(v) * Norm(v);
    const auto apply = [&](std::vector<double>* column) {
      double dot = 0;
      for (size_t i = 0; i < v.size(); ++i) dot += v[i] * (*column)[k + i];
      for (size_t i = 0; i < v.size(); ++i) (*column)[k + i] -= 2 * dot / square * v[i];
    };
    for (size_t l = k; l < r->size(); ++l) apply(&(*r)[l]);
    apply(y);
    return true;
  }

  size_t rows_;
  std::vector<double> b_;
  std::vector<std::vector<double>> columns_;
  std::vector<double> scale_;
  std::vector<bool> used_;
  std::vector<double> x_;
  double tolerance_ = 0;
};

bool AllFinite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

absl::StatusOr<NnlsSolution> SolveNnls(std::span<const double> a, size_t columns,
                                       std::span<const double> b) {
  if (columns == 0 || b.empty() || a.size() != columns * b.size()) {
    return absl::InvalidArgumentError(
        fmt::format("a matrix of {} entries does not have {} columns and {} rows, each at least 1",
                    a.size(), columns, b.size()));
  }
  if (!AllFinite(a) || !AllFinite(b)) {
    return absl::InvalidArgumentError("an entry of the matrix or the right side is not finite");
  }
  Problem problem(a, columns, b);
  std::vector<bool> refused(columns, false);
  for (size_t exchanges = 0; exchanges <= 10 * columns;) {
    const std::optional<size_t> next = problem.Steepest(refused);
    if (!next.has_value()) return problem.Solution();
    problem.Use(*next);
    std::optional<std::vector<double>> z = problem.Unconstrained();
    // Because of rounding errors, the new column may get a coefficient that is not positive, or
    // depend on the other columns. Then it is refused. This is the book's test of z[t] > 0.
    if (!z.has_value() || (*z)[*next] <= 0) {
      problem.Drop(*next);
      refused[*next] = true;
      continue;
    }
    std::fill(refused.begin(), refused.end(), false);
    ++exchanges;
    while (!problem.MoveTowards(*z) && exchanges++ <= 10 * columns) {
      z = problem.Unconstrained();
      if (!z.has_value()) return absl::InternalError("the columns in use depend on each other");
    }
  }
  return absl::InternalError(
      fmt::format("no solution after {} exchanges of columns", 10 * columns));
}

}  // namespace muster::scaler
