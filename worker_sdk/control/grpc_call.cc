#include "worker_sdk/control/grpc_call.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/status.h"

namespace muster::sdk {
namespace {

constexpr size_t kPrefixBytes = 5;

/// Undoes the percent-encoding of grpc-message.
std::string PercentDecode(std::string_view text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Reads grpc-status. Any other text is kUnknown, as gRPC demands.
int ParseGrpcStatus(std::string_view text) {
  constexpr int kUnknown = 2;
  constexpr int kLast = 16;
  int status = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  const bool known = error == std::errc() && end == text.data() + text.size();
  return known && status >= 0 && status <= kLast ? status : kUnknown;
}

}  // namespace

std::string FramedMessage(std::string_view message) {
  std::string framed(kPrefixBytes, '\0');
  for (int i = 0; i < 4; ++i) framed[4 - i] = static_cast<char>(message.size() >> (8 * i));
  framed.append(message);
  return framed;
}

absl::StatusOr<std::string> GrpcResult(std::string_view address, std::string_view method,
                                       const Http2Answer& answer) {
  std::string_view http_status;
  std::string message;
  std::optional<int> status;
  for (const auto& [name, value] : answer.fields) {
    if (name == ":status") http_status = value;
    if (name == "grpc-message") message = PercentDecode(value);
    if (name == "grpc-status") status = ParseGrpcStatus(value);
  }
  if (answer.too_large) {
    return absl::ResourceExhaustedError(
        fmt::format("the master at {} sent more than {} bytes", address, answer.bytes_max));
  }
  if (!answer.broken.empty()) return Unreachable(address, answer.broken);
  if (status.has_value() && *status != 0) {
    return absl::Status(static_cast<absl::StatusCode>(*status), message);
  }
  if (!status.has_value()) {
    const bool other = !http_status.empty() && http_status != "200";
    return Unreachable(
        address, other ? fmt::format("it answered HTTP status {}, so it is no master", http_status)
                       : fmt::format("it ended the call ({})", answer.ended));
  }
  const std::string_view body = answer.body;
  if (body.size() < kPrefixBytes || body[0] != 0) {
    return absl::InternalError(
        fmt::format("the master at {} answered {} without a plain message", address, method));
  }
  uint32_t length = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) length = length << 8 | static_cast<uint8_t>(body[i]);
  if (body.size() != size_t{length} + kPrefixBytes) {
    return absl::InternalError(
        fmt::format("the master at {} answered {} with {} bytes instead of {}", address, method,
                    body.size() - kPrefixBytes, length));
  }
  return std::string(body.substr(kPrefixBytes));
}

absl::Status Unreachable(std::string_view address, std::string_view why) {
  return absl::UnavailableError(
      fmt::format("the master at {} cannot be reached: {}", address, why));
}

}  // namespace muster::sdk
