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
  /// The spread of the residuals, scaled so that it estimates the standard deviation of normal
  /// noise.
  double noise = 0;
  /// Kendall's tau-a: of all pairs with different x, the share that rises minus the share that
  /// falls. 1 means that every later value is larger.
  double concordance = 0;
};

/// The slope is the median of the slopes of all pairs of points with different x. The intercept is
/// the median of y - slope * x. If there are more than 128 points, only 128 are used. They are
/// evenly chosen and include the first and the last. This bounds the cost to some 8,000 pairs. If
/// all points have the same x, the line is flat. Source: H. Theil, "A rank-invariant method of
/// linear and polynomial regression analysis", 1950; P. K. Sen, "Estimates of the regression
/// coefficient based on Kendall's tau", JASA 63, 1968.
RobustLine FitTheilSen(std::span<const Point> points);

}  // namespace muster::scaler
