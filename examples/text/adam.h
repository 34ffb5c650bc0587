#pragma once

#include <cstdint>
#include <span>

namespace text {

/// Source: Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015. The rate grows
/// linearly to `learning_rate` over the first `warmup` updates, and then falls like 1 / sqrt.
struct AdamOptions {
  float learning_rate = 0.003F;
  uint64_t warmup = 100;
  float first_decay = 0.9F;
  float second_decay = 0.98F;
  float smallest = 1e-8F;  // keeps a weight without gradients from a division by 0
};

/// The learning rate of an update; updates are counted from 1.
float RateAt(const AdamOptions& options, int64_t update);

/// The arrays of a layer, all of one size.
struct AdamLayer {
  std::span<float> weights;
  std::span<float> first;   // moving mean of the gradients, 0 at first
  std::span<float> second;  // moving mean of their squares, 0 at first
};

/// Changes a layer by the sum of the gradients of so many records. `rate` is the learning rate,
/// `update` counts the updates of the moments from 1. Pure: equal arguments give equal bits.
void Update(const AdamOptions& options, float rate, int64_t update, std::span<const float> sum,
            uint64_t records, const AdamLayer& layer);

}  // namespace text
