#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// The secret of a job: who knows it may ask and order. Thread-safe functions.
namespace muster {

/// The token in the file `path`: 64 hexadecimal digits, 32 random bytes. Made, with mode 0600, when
/// there is no such file, or one of ours whose mode is wrong: others may have read that token, so
/// nobody is let in with it any more, and the log says so. A file that is not ours, or holds
/// something else, is an error that says what to do, and stays as it is.
absl::StatusOr<std::string> LoadOrMakeToken(const std::string& path);

/// For whoever asks: the same file, with the same errors, and one for a wrong mode; kNotFound when
/// there is none. root may ask with the token of another user, too.
absl::StatusOr<std::string> LoadToken(const std::string& path);

/// Whether both are the same, in a time that depends on their lengths alone.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace muster
