#include "proto/messages/group_standing.h"

#include <array>

namespace muster {
namespace {

constexpr std::array<std::string_view, 6> kMemberPhases = {"idle",     "learning", "computing",
                                                           "reducing", "voted",    "applying"};

constexpr std::array<std::string_view, 5> kGroupStandings = {"unknown", "waiting", "learner",
                                                             "member", "refused"};

}  // namespace

std::string_view ToString(MemberPhase phase) {
  return kMemberPhases[static_cast<size_t>(phase)];
}

std::string_view ToString(GroupStanding standing) {
  return kGroupStandings[static_cast<size_t>(standing)];
}

std::span<const std::string_view> WordsOf(MemberPhase /*phase*/) {
  return kMemberPhases;
}

std::span<const std::string_view> WordsOf(GroupStanding /*standing*/) {
  return kGroupStandings;
}

}  // namespace muster
