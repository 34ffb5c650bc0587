#include "master/group_core/stored_states.h"

#include "base/text.h"
#include "master/group_core/group_books.h"

namespace muster {
namespace {

constexpr size_t kTextMax = 1'000;

}  // namespace

StoredStates StoredStatesOf(const GroupBooks& books) {
  StoredStates said{.forms = books.members.empty(), .checkpoint = books.lineage.checkpoint_step()};
  bool any_reads = false;
  for (const auto& [worker, process] : books.processes.all()) {
    const GroupExchangeRequest& report = process.report;
    const bool first = said.unwritten.empty() && process.standing == GroupStanding::kMember;
    if (first && !report.unwritten.empty()) {
      said.unwritten = Excerpt(report.unwritten, kTextMax);
      said.unwritten_by = worker;
    }
    if (!said.forms || process.standing != GroupStanding::kLearner) continue;
    const std::optional<UnreadableState>& lacks = report.unreadable;
    // It may still be able to.
    if (!lacks.has_value()) any_reads = true;
    if (!lacks.has_value() ||
        (said.unreadable.has_value() && said.unreadable->pieces <= lacks->pieces)) {
      continue;
    }
    said.unreadable = {lacks->pieces, Excerpt(lacks->error, kTextMax)};
    said.unreadable_by = worker;
  }
  if (any_reads) said.unreadable.reset();
  return said;
}

}  // namespace muster
