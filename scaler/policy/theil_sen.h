#pragma once

#include <span>

namespace muster::scaler {

struct Point {
  double x = 0;
  double y = 0;
};

/// A line through points of which up to 29 % may be arbitrarily wrong.
struct RobustLine {
  double slope = 0;
  double intercept = 0;
  /// Of the residuals, scaled so that it estimates the standard deviation of normal noise.
  double noise = 0;
  /// Of all pairs with different x, those that rise less those that fall, as a share: Kendall's
  /// tau-a. 1 = every later value is larger.
  double concordance = 0;
};

/// The median of the slopes of all pairs of points with different x; the intercept is the median of
/// y - slope * x. Of more than 128 points an even choice of 128 is taken (the first and the last
/// among them), so the cost is bounded: some 8,000 pairs. Without two different x the line is flat.
/// Source: H. Theil, "A rank-invariant method of linear and polynomial regression analysis", 1950;
/// P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968.
RobustLine FitTheilSen(std::span<const Point> points);

}  // namespace muster::scaler
