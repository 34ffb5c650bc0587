#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::scaler::rest {

/// One request as it came, body included. Names of headers are in lower case.
struct Request {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The first header of that (lower-case) name.
  std::optional<std::string_view> Header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
  size_t CountOf(std::string_view name) const {
    size_t count = 0;
    for (const auto& [key, value] : headers) count += key == name;
    return count;
  }
};

/// What a stream of server-sent events shall carry.
struct StreamRequest {
  bool events = true;
  bool status = true;
  /// Events after this one.
  uint64_t after = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  /// Besides Content-Type, Content-Length and those of every answer.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// The answer has no end: events follow.
  std::optional<StreamRequest> stream;
};

}  // namespace muster::scaler::rest
