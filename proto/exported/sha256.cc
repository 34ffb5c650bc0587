#include "proto/exported/sha256.h"

#include <fmt/format.h>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {
constexpr size_t kDigits = 64;
}  // namespace

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Sha256Hex(file.bytes());
}

std::string FormatSums(const Sha256Sums& sums) {
  std::string text;
  for (const auto& [name, sum] : sums) text += fmt::format("{}  {}\n", sum, name);
  return text;
}

absl::StatusOr<Sha256Sums> ParseSums(std::string_view text) {
  Sha256Sums sums;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    // "<digits>  name"; coreutils marks binary mode with an asterisk.
    if (line.size() < kDigits + 3 ||
        line.substr(0, kDigits).find_first_not_of("0123456789abcdef") != std::string_view::npos ||
        line[kDigits] != ' ' || (line[kDigits + 1] != ' ' && line[kDigits + 1] != '*')) {
      return absl::InvalidArgumentError(
          fmt::format("line {} is not a line of sha256sum: '{}'", number, line.substr(0, 80)));
    }
    sums[std::string(line.substr(kDigits + 2))] = std::string(line.substr(0, kDigits));
  }
  return sums;
}

}  // namespace muster
