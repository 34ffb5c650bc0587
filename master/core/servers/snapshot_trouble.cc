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
  const std::string nothing =
      fmt::format("nothing was committed for {}:{:02}", seconds / 60, seconds % 60);
  // The words of the system come after a path, and a narrow terminal has no room for both.
  if (newest_.error.find("No space left") != std::string::npos) {
    return fmt::format("{}: the disk of {}'s snapshots is full: {}", nothing, server,
                       newest_.error);
  }
  return fmt::format("{}, because {} cannot write its snapshots: {}", nothing, server,
                     newest_.error);
}

}  // namespace muster
