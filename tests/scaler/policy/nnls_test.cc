#include "scaler/policy/nnls.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler {
namespace {

using muster::testing::StatusIs;
using ::testing::HasSubstr;

struct Case {
  size_t columns;
  std::vector<double> a, b, x;
  double residual;
};

TEST(NnlsTest, GivesWhatSciPyGives) {
  // Expected: scipy.optimize.nnls of SciPy 1.17.
  const std::vector<Case> cases = {
      {2, {1, 2, 3, 4, 5, 6}, {7, 8, 9}, {0, 1.7857142857142856}, 3.9279220242478634},
      {2, {1, 0, 1, 0, 0, 1}, {2, 1, -1}, {1.5, 0}, 1.2247448713915892},
      {3,
       {1, 1, 1, 1, 2, 4, 1, 3, 9, 1, 4, 16, 1, 5, 25},
       {3, 2, 4, 1, 6},
       {2.1117647058823525, 0, 0.09893048128342255},
       3.3375997651775693},
      {4,
       {4, 1, -2, 3, 1, -3, 2, 1, -2, 2, 5, -1, 3, 0, 1, 2, 1, 1, 1, 1, 0, 2, -1, 4},
       {1, -2, 3, 4, -5, 6},
       {0, 0.7913804564591181, 0.22174828273875474, 0.6774318635054287},
       7.602177169581384},
      {2, {-1, -2, -3, -4}, {1, 1}, {0, 0}, std::sqrt(2.0)},
      {2, {1, 1e6, 2, 3e6, 3, 2e6}, {1, 2, 3.5}, {1.1071428571428572, 0}, 0.2988071523335982},
  };
  for (const Case& c : cases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const NnlsSolution solution, SolveNnls(c.a, c.columns, c.b));
    ASSERT_EQ(solution.x.size(), c.columns);
    for (size_t j = 0; j < c.columns; ++j) EXPECT_NEAR(solution.x[j], c.x[j], 1e-12);
    EXPECT_NEAR(solution.residual_norm, c.residual, 1e-12);
  }
}

TEST(NnlsTest, RandomProblemsMeetTheConditionsOfTheOptimum) {
  // Karush, Kuhn, Tucker: x >= 0; the gradient is 0 where x > 0 and points into x < 0 where x = 0.
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    const size_t columns = 1 + rng.Below(5);
    const size_t rows = columns + rng.Below(6);
    std::vector<double> a(rows * columns), b(rows);
    const double scale = std::pow(10.0, static_cast<double>(rng.Below(9)) - 4);
    for (double& value : a) value = scale * (rng.Uniform() - 0.3);
    for (double& value : b) value = rng.Uniform() - 0.3;
    MUSTER_ASSERT_OK_AND_ASSIGN(const NnlsSolution solution, SolveNnls(a, columns, b));
    for (size_t j = 0; j < columns; ++j) {
      double gradient = 0;
      for (size_t i = 0; i < rows; ++i) {
        double residual = b[i];
        for (size_t k = 0; k < columns; ++k) residual -= a[i * columns + k] * solution.x[k];
        gradient += a[i * columns + j] / scale * residual;
      }
      EXPECT_GE(solution.x[j], 0);
      EXPECT_LT(gradient, 1e-8);
      if (solution.x[j] > 0) {
        EXPECT_NEAR(gradient, 0, 1e-8);
      }
    }
  }
}

TEST(NnlsTest, ColumnsThatAreEmptyOrDependOnOthersGetNothing) {
  MUSTER_ASSERT_OK_AND_ASSIGN(NnlsSolution solution, SolveNnls(std::vector<double>{0, 2, 0, 2}, 2,
                                                               std::vector<double>{1, 1}));
  EXPECT_DOUBLE_EQ(solution.x[0], 0);
  EXPECT_DOUBLE_EQ(solution.x[1], 0.5);
  MUSTER_ASSERT_OK_AND_ASSIGN(
      solution, SolveNnls(std::vector<double>{1, 2, 1, 2}, 2, std::vector<double>{3, 3}));
  EXPECT_DOUBLE_EQ(solution.x[0] + 2 * solution.x[1], 3);
  EXPECT_NEAR(solution.residual_norm, 0, 1e-12);
  // More columns than rows.
  MUSTER_ASSERT_OK_AND_ASSIGN(solution,
                              SolveNnls(std::vector<double>{1, 2, 3}, 3, std::vector<double>{6}));
  EXPECT_NEAR(solution.residual_norm, 0, 1e-12);
}

TEST(NnlsTest, RefusesWhatIsNoProblem) {
  const std::vector<double> two = {1, 2};
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(SolveNnls(two, 0, two), StatusIs(kInvalid, HasSubstr("0 columns")));
  EXPECT_THAT(SolveNnls(two, 2, two), StatusIs(kInvalid, HasSubstr("2 entries")));
  EXPECT_THAT(SolveNnls({}, 2, {}), StatusIs(kInvalid, HasSubstr("0 rows")));
  const std::vector<double> nan = {std::numeric_limits<double>::quiet_NaN(), 1};
  EXPECT_THAT(SolveNnls(nan, 1, two), StatusIs(kInvalid, HasSubstr("not finite")));
  EXPECT_THAT(SolveNnls(two, 1, nan), StatusIs(kInvalid, HasSubstr("not finite")));
}

}  // namespace
}  // namespace muster::scaler
