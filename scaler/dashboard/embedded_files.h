#pragma once

#include <string_view>
#include <vector>

namespace muster::scaler::dashboard {

struct EmbeddedFile {
  std::string_view name;  // "app.js"
  std::string_view bytes;
};

/// The files that scaler/dashboard/CMakeLists.txt names, in that order. cmake/MusterEmbed.cmake
/// puts them into the program.
const std::vector<EmbeddedFile>& EmbeddedFiles();

}  // namespace muster::scaler::dashboard
