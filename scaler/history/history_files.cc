#include "scaler/history/history_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace muster::scaler {
namespace {

constexpr std::string_view kPrefix = "history-";
constexpr std::string_view kSuffix = ".jsonl";

/// 0 if the name is not that of a history file.
uint64_t NumberOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return 0;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(kSuffix.size(), name.size()));
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && rest == name.data() + name.size() ? number : 0;
}

}  // namespace

std::string HistoryPath(const std::string& folder, uint64_t number) {
  return fmt::format("{}/{}{:08}{}", folder, kPrefix, number, kSuffix);
}

std::vector<HistoryFile> ListHistory(const std::string& folder) {
  std::vector<HistoryFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const uint64_t number = NumberOf(entry->path().filename().string());
    std::error_code size_error;
    const uint64_t bytes = entry->file_size(size_error);
    if (number != 0 && !size_error) {
      files.push_back({.number = number, .path = entry->path().string(), .bytes = bytes});
    }
  }
  std::ranges::sort(files, {}, &HistoryFile::number);
  return files;
}

}  // namespace muster::scaler
