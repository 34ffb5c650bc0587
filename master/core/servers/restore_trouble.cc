#include "master/core/servers/restore_trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

/// Servers call several times a second; after a longer silence this much of it counts.
constexpr std::chrono::seconds kStepMax{1};

}  // namespace

RestoreTrouble::Change RestoreTrouble::Take(const Report& report, TimePoint now) {
  if (!active()) {
    if (report.error.empty() || report.waiting == 0) return Change::kNone;
    newest_ = report;
    heard_at_ = now;
    lasts_ = {};
    return Change::kBegan;
  }
  if (report.waiting == 0) {
    heard_at_.reset();
    return Change::kOver;
  }
  const std::chrono::nanoseconds passed = now - std::exchange(*heard_at_, now);
  if (!report.error.empty()) lasts_ += std::min<std::chrono::nanoseconds>(passed, kStepMax);
  if (report.waiting < newest_.waiting) lasts_ = {};
  newest_.waiting = report.waiting;
  if (!report.error.empty()) newest_.error = report.error;
  return Change::kNone;
}

std::string RestoreTrouble::Text() const {
  return fmt::format("{} of its partitions cannot be restored: {}", newest_.waiting, newest_.error);
}

}  // namespace muster
