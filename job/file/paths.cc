#include "job/file/paths.h"

#include <filesystem>

namespace muster::job_file {

std::string Absolute(const std::string& base_directory, const std::string& path) {
  std::string result = (std::filesystem::path(base_directory) / path).lexically_normal().string();
  while (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

std::string EscapeGlob(const std::string& folder) {
  std::string escaped;
  for (const char c : folder) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace muster::job_file
