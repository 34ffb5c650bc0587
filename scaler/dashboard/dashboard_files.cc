#include "scaler/dashboard/dashboard_files.h"

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "scaler/dashboard/embedded_files.h"

namespace muster::scaler::dashboard {
namespace {

constexpr std::string_view kPage = "index.html";

std::string_view ContentType(std::string_view name) {
  static const auto* const kTypes =
      new std::map<std::string_view, std::string_view>{{".html", "text/html; charset=utf-8"},
                                                       {".css", "text/css; charset=utf-8"},
                                                       {".js", "text/javascript; charset=utf-8"},
                                                       {".svg", "image/svg+xml"},
                                                       {".txt", "text/plain; charset=utf-8"}};
  const auto type = kTypes->find(name.substr(name.rfind('.')));
  MUSTER_CHECK_MSG(type != kTypes->end(), name);
  return type->second;
}

/// Their paths are views of texts that live as long as the program.
std::vector<rest::StaticFile> MakeFiles() {
  static auto* const kPaths = new std::deque<std::string>();
  std::vector<rest::StaticFile> files;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    kPaths->push_back(file.name == kPage ? "/" : "/dashboard/" + std::string(file.name));
    files.push_back(
        {.path = kPaths->back(), .content_type = ContentType(file.name), .bytes = file.bytes});
  }
  return files;
}

}  // namespace

std::vector<rest::StaticFile> DashboardFiles() {
  static const auto* const kFiles = new std::vector<rest::StaticFile>(MakeFiles());
  return *kFiles;
}

}  // namespace muster::scaler::dashboard
