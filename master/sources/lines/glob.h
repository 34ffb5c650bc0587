#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// The regular files that the patterns match (glob(7); a pattern without wildcards names a file),
/// sorted by bytes, each once. Errors name the pattern: kNotFound when one matches nothing (and
/// says what is in its folder), kInvalidArgument when it matches something that is not a regular
/// file, kPermissionDenied when a folder cannot be read.
absl::StatusOr<std::vector<std::string>> ExpandGlobs(const std::vector<std::string>& patterns);

}  // namespace muster
