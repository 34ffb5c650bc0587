#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// The keys that sign requests. They are never logged, and never part of a message.
struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // may be empty
};

/// Reads a file in AWS's format: lines "aws_access_key_id = ...", "aws_secret_access_key = ..." and
/// "aws_session_token = ..." of the section [default], or without any section. An error says which
/// line is wrong, without its contents. Pure.
absl::StatusOr<S3Credentials> ParseCredentials(std::string_view text);

}  // namespace muster
