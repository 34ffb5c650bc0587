#include "master/core/nodes/write_trouble.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

WriteTrouble::Change WriteTrouble::Take(const Report& report, TimePoint now,
                                        std::chrono::nanoseconds turn) {
  if (!active() && report.error.empty()) return Change::kNone;
  if (!active() || report.progress != newest_.progress) since_ = now;
  newest_.progress = report.progress;
  if (!report.error.empty()) {
    newest_.error = report.error;
    return std::exchange(failed_at_, now).has_value() ? Change::kNone : Change::kBegan;
  }
  if (now - *failed_at_ < turn) return Change::kNone;
  failed_at_.reset();
  return Change::kOver;
}

std::string WriteTrouble::Text(std::string_view node, const Words& words, TimePoint now) const {
  if (!active() || now - since_ < words.told_after) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
  const std::string nothing =
      fmt::format("{} for {}:{:02}", words.nothing, seconds / 60, seconds % 60);
  // The words of the system come after a path, and a narrow terminal has no room for both.
  if (newest_.error.find("No space left") != std::string::npos) {
    return fmt::format("{}: the disk of {}'s {} is full: {}", nothing, node, words.what,
                       newest_.error);
  }
  return fmt::format("{}, because {} cannot write its {}: {}", nothing, node, words.what,
                     newest_.error);
}

}  // namespace muster
