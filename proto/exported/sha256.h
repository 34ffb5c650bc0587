#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

/// SHA-256 of a file's contents, as Sha256Hex (base/digest) writes it. Errors name the path.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

/// File name -> SHA-256, as coreutils' `sha256sum` writes and checks them.
using Sha256Sums = std::map<std::string, std::string>;
std::string FormatSums(const Sha256Sums& sums);
/// kInvalidArgument with the number of the first line that is not one.
absl::StatusOr<Sha256Sums> ParseSums(std::string_view text);

}  // namespace muster
