#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::scaler::rest {

/// One request with its body. Names of headers are in lower case.
struct Request {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The value of the first header with this name. The name must be in lower case.
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

/// What a stream of server-sent events must carry.
struct StreamRequest {
  bool events = true;
  bool status = true;
  /// The stream carries events with ids above this one.
  uint64_t after = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  /// Further headers. Content-Type, Content-Length and those of every answer are not among them.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// If present, the answer is a stream of events without an end.
  std::optional<StreamRequest> stream;
};

}  // namespace muster::scaler::rest
