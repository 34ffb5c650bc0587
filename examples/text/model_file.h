#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/text/transformer.h"

namespace text {

/// A trained network.
struct Model {
  Shape shape;
  uint64_t updates = 0;                    // steps that it has seen
  std::vector<std::vector<float>> layers;  // as LayerSize says
};

/// The bytes of a model's file: a line with the sizes and the updates, then all weights as
/// little-endian float32.
std::string FormatModel(const Shape& shape, uint64_t updates, const Layers<float>& layers);

/// The model of such bytes. If they are none, returns nullopt, and the reason in `error`.
std::optional<Model> ParseModel(std::string_view bytes, std::string& error);

}  // namespace text
