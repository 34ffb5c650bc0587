#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::kubernetes {

/// Splits a stream of bytes into lines, each a JSON document. A watch has this form. Pure; not
/// thread-safe.
class JsonLines {
 public:
  explicit JsonLines(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  /// Calls `on_line` for each line that is now complete. Returns its first error. kInvalidArgument
  /// if a line is no JSON; kResourceExhausted if it is longer than the limit.
  absl::Status Append(std::string_view bytes,
                      const std::function<absl::Status(const nlohmann::json&)>& on_line);

  /// True if the stream so far ends inside a line.
  bool IsInsideLine() const { return !rest_.empty(); }

 private:
  const size_t line_bytes_max_;
  std::string rest_;
};

}  // namespace muster::kubernetes
