#include "master/sources/lines/glob.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace muster {
namespace {

/// Lists what is in the pattern's folder, so that a typing error is visible.
std::string DescribeFolder(const std::string& pattern) {
  const size_t wildcard = pattern.find_first_of("*?[");
  const size_t slash = pattern.rfind('/', wildcard);
  const std::string folder = slash == std::string::npos ? "." : pattern.substr(0, slash + 1);
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) return fmt::format("the folder {} cannot be listed: {}", folder, error.message());
  std::vector<std::string> names;
  constexpr size_t kNamesMax = 5;
  size_t count = 0;
  for (const auto end = std::filesystem::directory_iterator(); entries != end && !error;
       entries.increment(error)) {
    ++count;
    if (names.size() < kNamesMax) names.push_back(entries->path().filename().string());
  }
  if (count == 0) return fmt::format("the folder {} is empty", folder);
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return fmt::format("the folder {} has {} {}: {}{}", folder, count,
                     count == 1 ? "entry" : "entries", list, count > kNamesMax ? ", ..." : "");
}

absl::Status ExpandOne(const std::string& pattern, std::vector<std::string>* files) {
  ::glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  absl::Cleanup free_found = [&found] { ::globfree(&found); };
  if (result == GLOB_NOMATCH) {
    return absl::NotFoundError(
        fmt::format("no file matches '{}'; {}", pattern, DescribeFolder(pattern)));
  }
  if (result == GLOB_ABORTED) {
    return ErrnoStatus(errno, fmt::format("cannot list the folders of '{}'", pattern));
  }
  if (result != 0) {
    return absl::ResourceExhaustedError(fmt::format("no memory to expand '{}'", pattern));
  }
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    const std::string path = found.gl_pathv[i];
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) {
      return ErrnoStatus(errno, fmt::format("cannot read {} (matched by '{}')", path, pattern));
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(fmt::format(
          "{} (matched by '{}') is not a regular file{}", path, pattern,
          S_ISDIR(info.st_mode) ? fmt::format(" but a folder; write '{}/*' for its files", path)
                                : ""));
    }
    files->push_back(path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandGlobs(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    MUSTER_RETURN_IF_ERROR(ExpandOne(pattern, &files));
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace muster
