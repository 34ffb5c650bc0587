#include "master/core/servers/snapshot_trouble.h"

#include <fmt/format.h>

#include <utility>

namespace muster {
namespace {

/// A store that is away for a moment is no trouble of the job.
constexpr std::chrono::seconds kToldAfter{10};

}  // namespace

SnapshotTrouble::Change SnapshotTrouble::Take(const Report& report, TimePoint now,
                                              std::chrono::nanoseconds turn) {
  if (!active() && report.error.empty()) return Change::kNone;
  if (!active() || report.committed != newest_.committed) since_ = now;
  newest_.committed = report.committed;
  if (!report.error.empty()) {
    newest_.error = report.error;
    return std::exchange(failed_at_, now).has_value() ? Change::kNone : Change::kBegan;
  }
  if (now - *failed_at_ < turn) return Change::kNone;
  failed_at_.reset();
  return Change::kOver;
}

std::string SnapshotTrouble::Text(std::string_view server, TimePoint now) const {
  if (!active() || now - since_ < kToldAfter) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
  return fmt::format(
      "nothing was committed for {}:{:02}, because {} cannot write its snapshots: {}", seconds / 60,
      seconds % 60, server, newest_.error);
}

}  // namespace muster
