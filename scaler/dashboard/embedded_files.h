#pragma once

#include <string_view>
#include <vector>

namespace muster::scaler::dashboard {

struct EmbeddedFile {
  std::string_view name;  // "app.js"
  std::string_view bytes;
};

/// What cmake/MusterEmbed.cmake took from the files that CMakeLists.txt names, in that order.
const std::vector<EmbeddedFile>& EmbeddedFiles();

}  // namespace muster::scaler::dashboard
