#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace muster::sdk {

/// How the weights of a group follow the mean of the members' changes (the pseudo-gradient: weights
/// before minus weights after). The public classes of muster/local_sgd.h explain the numbers.
struct OuterOptimizer {
  enum class Kind : uint8_t { kSgd, kNesterov, kAdam };
  Kind kind = Kind::kSgd;
  float learning_rate = 1;
  float momentum = 0;  // kNesterov; of kAdam: beta1
  float beta2 = 0;     // kAdam
  float epsilon = 0;   // kAdam
};

/// kInvalidArgument if the optimizer cannot use a number; the text names it and its bounds.
absl::Status CheckOptimizer(const OuterOptimizer& optimizer);
/// "Nesterov with rate 0.7, momentum 0.9". Only equal optimizers have the same text.
std::string TextOf(const OuterOptimizer& optimizer);
/// How many arrays of the weights' size the optimizer keeps: 0 to 2.
uint32_t MomentsOf(OuterOptimizer::Kind kind);

/// The arrays of a piece of the weights. They have equal sizes, and those that the optimizer does
/// not keep are empty.
struct OuterArrays {
  std::span<float> weights;
  std::span<float> first;   // momentum, or mean of the pseudo-gradients; 0 at first
  std::span<float> second;  // mean of their squares; 0 at first
};

/// One update by `sum / count`. `sum` has at least as many elements as the weights, and `count` is
/// above 0. `update` counts the updates of this piece from 1. Equal arguments give equal bits,
/// wherever the arrays lie in memory. Pure.
void UpdateOuter(const OuterOptimizer& optimizer, uint64_t update, std::span<const float> sum,
                 float count, const OuterArrays& arrays);

/// out = from - to, element by element.
void Difference(std::span<const float> from, std::span<const float> to, std::span<float> out);
/// mixed = own * alpha + other * (1 - alpha), element by element.
void Mix(float alpha, std::span<const float> own, std::span<const float> other,
         std::span<float> mixed);

}  // namespace muster::sdk
