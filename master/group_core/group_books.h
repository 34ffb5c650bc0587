#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "master/group_core/group_data.h"
#include "master/group_core/group_options.h"
#include "master/group_core/lineage.h"
#include "master/group_core/processes.h"

namespace muster {

/// What the parts of GroupCore keep together.
struct GroupBooks {
  const GroupOptions options;
  const MasterIncarnation incarnation;
  GroupData* const data;
  Lineage lineage;
  Processes processes;
  /// Of the newest attempt, by rank. Empty: the group forms, and nobody has a place. An attempt of
  /// an earlier master does not count.
  std::vector<GroupProcess> members;
  /// The number of the newest news for anybody. It never shrinks while this master lives, so that
  /// a process that is forgotten and comes back gets larger numbers than before.
  uint64_t news = 0;

  std::optional<uint32_t> RankOf(const GroupProcess& process) const {
    const auto it = std::ranges::find(members, process);
    if (it == members.end()) return std::nullopt;
    return static_cast<uint32_t>(it - members.begin());
  }
  bool IsMember(const GroupProcess& process) const { return RankOf(process).has_value(); }
  /// The newest call of a member; requires that its process is known.
  const GroupExchangeRequest& ReportOf(const GroupProcess& member) const {
    return processes.Find(member)->report;
  }
  bool AllMembersLeave() const {
    return std::ranges::all_of(
        members, [this](const GroupProcess& member) { return processes.Find(member)->leaves(); });
  }
};

}  // namespace muster
