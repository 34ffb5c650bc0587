#include "master/core/servers/restore_trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/names/place.h"

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

std::string RestoreTrouble::EndText(std::string_view trouble, std::chrono::milliseconds timeout,
                                    std::string_view place) {
  return fmt::format(
      "{}. It has tried for {:g} s (spec.snapshots.restoreTimeout). Put the files of {} back as "
      "they were and run the job again: it continues where it stopped. If a file is lost, its "
      "weights are lost, too: the job must then begin again, with another spec.stateDirectory",
      trouble, static_cast<double>(timeout.count()) / 1000.0, ShownPlace(place));
}

std::string RestoreTrouble::Text() const {
  return fmt::format("{} of its partitions cannot be restored: {}", newest_.waiting, newest_.error);
}

}  // namespace muster
