#include "kubernetes/model/json_lines.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "kubernetes/model/json_access.h"

namespace muster::kubernetes {

absl::Status JsonLines::Append(std::string_view bytes,
                               const std::function<absl::Status(const nlohmann::json&)>& on_line) {
  size_t end;
  while ((end = bytes.find('\n')) != std::string_view::npos) {
    rest_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(rest_, {});
    if (line.size() > line_bytes_max_) break;
    if (line.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(line));
    MUSTER_RETURN_IF_ERROR(on_line(document));
  }
  if (end != std::string_view::npos || rest_.size() + bytes.size() > line_bytes_max_) {
    return absl::ResourceExhaustedError(
        fmt::format("the API server sent an event of more than {} bytes", line_bytes_max_));
  }
  rest_ += bytes;
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
