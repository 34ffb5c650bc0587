#include "examples/text/adam.h"

#include <algorithm>
#include <cmath>

namespace text {

float RateAt(const AdamOptions& options, int64_t update) {
  const auto at = static_cast<float>(update);
  const auto warmup = static_cast<float>(std::max<uint64_t>(options.warmup, 1));
  return options.learning_rate * std::min(at / warmup, std::sqrt(warmup / at));
}

void Update(const AdamOptions& options, float rate, int64_t update, std::span<const float> sum,
            uint64_t records, const AdamLayer& layer) {
  const float a = options.first_decay, b = options.second_decay;
  const auto at = static_cast<float>(update);
  // The means begin at 0, and so are too small at first.
  const float first_missing = 1 - std::pow(a, at), second_missing = 1 - std::pow(b, at);
  const float corrected = rate / first_missing;
  for (size_t i = 0; i < sum.size(); ++i) {
    const float gradient = sum[i] / static_cast<float>(records);
    layer.first[i] = a * layer.first[i] + (1 - a) * gradient;
    layer.second[i] = b * layer.second[i] + (1 - b) * gradient * gradient;
    layer.weights[i] -= corrected * layer.first[i] /
                        (std::sqrt(layer.second[i] / second_missing) + options.smallest);
  }
}

}  // namespace text
