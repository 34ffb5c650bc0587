#include "ps/engine/schedule.h"

#include <cmath>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ScheduleKind = ScheduleSpec::Kind;

TEST(ScheduleTest, FactorsByTable) {
  const ScheduleSpec constant;
  const ScheduleSpec warm{.warmup_steps = 4};
  const ScheduleSpec step{
      .kind = ScheduleKind::kStep, .warmup_steps = 2, .period_steps = 10, .decay = 0.5f};
  const ScheduleSpec cosine{
      .kind = ScheduleKind::kCosine, .warmup_steps = 0, .period_steps = 100, .final_factor = 0.2f};
  struct Case {
    ScheduleSpec schedule;
    uint64_t step;
    double factor;
  };
  const Case cases[] = {
      {constant, 0, 1},
      {constant, UINT64_MAX, 1},
      {warm, 0, 0.25},
      {warm, 3, 1},
      {warm, 4, 1},
      {step, 0, 0.5},
      {step, 1, 1},
      {step, 11, 1},
      {step, 12, 0.5},
      {step, 21, 0.5},
      {step, 22, 0.25},
      {step, UINT64_MAX, 0},
      {{.kind = ScheduleKind::kStep, .period_steps = 1, .decay = 0.5f}, 3, 0.125},
      {cosine, 0, 1},
      {cosine, 25, 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2},
      {cosine, 50, 0.6},
      {cosine, 100, 0.2},
      {cosine, UINT64_MAX, 0.2},
      // A period of 0 is refused elsewhere; here it must only not divide by zero.
      {{.kind = ScheduleKind::kStep, .decay = 1}, 5, 1},
      {{.kind = ScheduleKind::kCosine, .final_factor = 0.5f}, 5, 0.5},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(ScheduleFactor(c.schedule, c.step), c.factor, 1e-6)
        << "kind " << static_cast<int>(c.schedule.kind) << " step " << c.step;
  }
}

}  // namespace
}  // namespace muster::ps
