#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// The secret of a job. Anyone who knows it may ask the job and give it orders. Thread-safe
/// functions.
namespace muster {

/// The token in the file `path`: 64 hexadecimal digits, 32 random bytes. If there is no file, it is
/// created with mode 0600. If the file is ours but has a wrong mode, others may have read the
/// token, so a new token replaces it, and the log says so. A file that is not ours, or has other
/// contents, is an error that says what to do, and stays as it is.
absl::StatusOr<std::string> LoadOrMakeToken(const std::string& path);

/// For callers that use the token: reads the same file, with the same errors, and an error for a
/// wrong mode; kNotFound if there is no file. root may use the token of another user, too.
absl::StatusOr<std::string> LoadToken(const std::string& path);

/// True if both are the same. How long this takes depends only on their lengths.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace muster
