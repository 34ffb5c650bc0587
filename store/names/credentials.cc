#include "store/names/credentials.h"

#include <algorithm>

#include "base/status.h"

namespace muster {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

absl::StatusOr<S3Credentials> ParseCredentials(std::string_view text) {
  S3Credentials credentials;
  bool ours = true;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = Trim(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      ours = line == "[default]";
      continue;
    }
    if (!ours) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return absl::InvalidArgumentError(
          fmt::format("line {}: expected 'aws_access_key_id = ...'", number));
    }
    const std::string_view name = Trim(line.substr(0, equals));
    const std::string value(Trim(line.substr(equals + 1)));
    if (name == "aws_access_key_id") credentials.access_key = value;
    if (name == "aws_secret_access_key") credentials.secret_key = value;
    if (name == "aws_session_token") credentials.session_token = value;
  }
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return absl::InvalidArgumentError(
        "aws_access_key_id or aws_secret_access_key is missing from the section [default]");
  }
  return credentials;
}

}  // namespace muster
