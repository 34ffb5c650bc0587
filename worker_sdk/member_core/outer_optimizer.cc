#include "worker_sdk/member_core/outer_optimizer.h"

#include <cmath>
#include <string_view>

namespace muster::sdk {
namespace {

constexpr float kLearningRateMax = 1000;

absl::Status CheckNumber(std::string_view name, float value, bool good, std::string_view bounds) {
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the outer optimizer's {} is {}; use a number {}", name, value, bounds));
}
bool IsFraction(float value) {
  return value >= 0 && value < 1;
}

}  // namespace

absl::Status CheckOptimizer(const OuterOptimizer& optimizer) {
  const float rate = optimizer.learning_rate;
  MUSTER_RETURN_IF_ERROR(CheckNumber("learning_rate", rate, rate > 0 && rate <= kLearningRateMax,
                                     "above 0, and at most 1000"));
  constexpr std::string_view kFraction = "from 0 to below 1";
  if (optimizer.kind == OuterOptimizer::Kind::kNesterov) {
    return CheckNumber("momentum", optimizer.momentum, IsFraction(optimizer.momentum), kFraction);
  }
  if (optimizer.kind != OuterOptimizer::Kind::kAdam) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(
      CheckNumber("beta1", optimizer.momentum, IsFraction(optimizer.momentum), kFraction));
  MUSTER_RETURN_IF_ERROR(
      CheckNumber("beta2", optimizer.beta2, IsFraction(optimizer.beta2), kFraction));
  return CheckNumber("epsilon", optimizer.epsilon, optimizer.epsilon > 0 && optimizer.epsilon <= 1,
                     "above 0, and at most 1");
}

std::string TextOf(const OuterOptimizer& optimizer) {
  switch (optimizer.kind) {
    case OuterOptimizer::Kind::kSgd:
      return fmt::format("SGD with rate {}", optimizer.learning_rate);
    case OuterOptimizer::Kind::kNesterov:
      return fmt::format("Nesterov with rate {}, momentum {}", optimizer.learning_rate,
                         optimizer.momentum);
    case OuterOptimizer::Kind::kAdam:
      break;
  }
  return fmt::format("Adam with rate {}, beta1 {}, beta2 {}, epsilon {}", optimizer.learning_rate,
                     optimizer.momentum, optimizer.beta2, optimizer.epsilon);
}

uint32_t MomentsOf(OuterOptimizer::Kind kind) {
  switch (kind) {
    case OuterOptimizer::Kind::kSgd:
      return 0;
    case OuterOptimizer::Kind::kNesterov:
      return 1;
    case OuterOptimizer::Kind::kAdam:
      return 2;
  }
  return 0;
}

void UpdateOuter(const OuterOptimizer& optimizer, uint64_t update, std::span<const float> sum,
                 float count, const OuterArrays& arrays) {
  const float rate = optimizer.learning_rate;
  const float a = optimizer.momentum;
  const float b = optimizer.beta2;
  const size_t size = arrays.weights.size();
  float* const weights = arrays.weights.data();
  switch (optimizer.kind) {
    case OuterOptimizer::Kind::kSgd:
      for (size_t i = 0; i < size; ++i) weights[i] -= rate * (sum[i] / count);
      return;
    case OuterOptimizer::Kind::kNesterov:
      for (size_t i = 0; i < size; ++i) {
        const float change = sum[i] / count;
        const float moment = a * arrays.first[i] + change;
        arrays.first[i] = moment;
        weights[i] -= rate * (change + a * moment);
      }
      return;
    case OuterOptimizer::Kind::kAdam:
      break;
  }
  // The means begin at 0, so they are too small at first. This corrects them.
  const auto at = static_cast<double>(update);
  const auto first_part = static_cast<float>(1 - std::pow(static_cast<double>(a), at));
  const auto second_part = static_cast<float>(1 - std::pow(static_cast<double>(b), at));
  for (size_t i = 0; i < size; ++i) {
    const float change = sum[i] / count;
    arrays.first[i] = a * arrays.first[i] + (1 - a) * change;
    arrays.second[i] = b * arrays.second[i] + (1 - b) * (change * change);
    weights[i] -= rate * (arrays.first[i] / first_part) /
                  (std::sqrt(arrays.second[i] / second_part) + optimizer.epsilon);
  }
}

void Difference(std::span<const float> from, std::span<const float> to, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = from[i] - to[i];
}

void Mix(float alpha, std::span<const float> own, std::span<const float> other,
         std::span<float> mixed) {
  for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = alpha * own[i] + (1 - alpha) * other[i];
}

}  // namespace muster::sdk
