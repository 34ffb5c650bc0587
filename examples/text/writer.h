#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/text/model_file.h"

namespace text {

struct WriterOptions {
  size_t length = 400;       // characters to add
  float temperature = 0.7F;  // above 0; towards 0, only the most likely character is left
  uint64_t seed = 1;
};

/// The characters that follow `begin`, which has at least one: each is drawn from the probabilities
/// that the model gives it. Pure.
std::vector<uint8_t> Continue(const Model& model, std::span<const uint8_t> begin,
                              const WriterOptions& options);

}  // namespace text
