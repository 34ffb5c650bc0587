#include "examples/text/model_file.h"

#include <bit>
#include <cstring>
#include <sstream>

namespace text {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kName = "muster-text-model";

}  // namespace

std::string FormatModel(const Shape& shape, uint64_t updates, const Layers<float>& layers) {
  std::ostringstream line;
  line << kName << " characters " << shape.characters << " context " << shape.context << " width "
       << shape.width << " heads " << shape.heads << " blocks " << shape.blocks << " updates "
       << updates << "\n";
  std::string bytes = line.str();
  for (const std::span<const float> layer : layers) {
    bytes.append(reinterpret_cast<const char*>(layer.data()), layer.size_bytes());
  }
  return bytes;
}

std::optional<Model> ParseModel(std::string_view bytes, std::string& error) {
  const size_t end = bytes.find('\n');
  Model model;
  Shape& shape = model.shape;
  std::string name, words[6];
  std::istringstream line(std::string(bytes.substr(0, std::min<size_t>(end, 200))));
  line >> name >> words[0] >> shape.characters >> words[1] >> shape.context >> words[2] >>
      shape.width >> words[3] >> shape.heads >> words[4] >> shape.blocks >> words[5] >>
      model.updates;
  if (!line || end == std::string_view::npos || name != kName) {
    error = "the file does not begin with the line of a model";
    return std::nullopt;
  }
  if (const std::optional<std::string> why = ShapeError(shape)) {
    error = "there is no such model: " + *why;
    return std::nullopt;
  }
  bytes.remove_prefix(end + 1);
  if (bytes.size() != WeightCount(shape) * sizeof(float)) {
    error = "the weights have " + std::to_string(bytes.size()) + " bytes, not " +
            std::to_string(WeightCount(shape) * sizeof(float));
    return std::nullopt;
  }
  for (size_t layer = 0; layer < LayerCount(shape); ++layer) {
    std::vector<float>& values = model.layers.emplace_back(LayerSize(shape, layer));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    bytes.remove_prefix(values.size() * sizeof(float));
  }
  return model;
}

}  // namespace text
