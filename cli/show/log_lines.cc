#include "cli/show/log_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "proto/fields/json.h"

namespace muster {

std::string LogLines::Take(std::string_view piece) {
  if (form_ == LogForm::kAsItIs) return std::string(piece);
  rest_ += piece;
  std::string shown;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    shown += Shown(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  return shown;
}

std::string LogLines::Finish() {
  const std::string last = std::exchange(rest_, "");
  return last.empty() ? "" : Shown(last);
}

std::string LogLines::Shown(std::string_view line) const {
  if (form_ == LogForm::kWithNode) return fmt::format("[{}] {}\n", node_, line);
  if (form_ == LogForm::kLines) return fmt::format("{}\n", line);
  return JsonText({{"node", node_}, {"line", line}}) + "\n";
}

}  // namespace muster
