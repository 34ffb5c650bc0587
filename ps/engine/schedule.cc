#include "ps/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::ps {

float ScheduleFactor(const ScheduleSpec& schedule, uint64_t step) {
  if (step < schedule.warmup_steps) {
    // step + 1, because the first minibatch should train, too.
    return static_cast<float>(static_cast<double>(step + 1) /
                              static_cast<double>(schedule.warmup_steps));
  }
  const uint64_t position = step - schedule.warmup_steps;
  const uint64_t period = std::max<uint64_t>(schedule.period_steps, 1);
  switch (schedule.kind) {
    case ScheduleSpec::Kind::kConstant:
      return 1;
    case ScheduleSpec::Kind::kStep:
      return static_cast<float>(
          std::pow(static_cast<double>(schedule.decay), static_cast<double>(position / period)));
    case ScheduleSpec::Kind::kCosine: {
      if (position >= period) return schedule.final_factor;
      const double turned = static_cast<double>(position) / static_cast<double>(period);
      const double weight = 0.5 * (1 + std::cos(std::numbers::pi * turned));
      const double final_factor = schedule.final_factor;
      return static_cast<float>(final_factor + (1 - final_factor) * weight);
    }
  }
  return 1;
}

}  // namespace muster::ps
