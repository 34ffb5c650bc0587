#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// What a process of a job is. The numbers are on disk in histories; the journal, the wire, plans
/// and documents have the words.
enum class NodeRole : uint8_t { kMaster, kServer, kWorker, kScaler };

inline constexpr std::array<std::string_view, 4> kNodeRoles = {"master", "ps", "worker", "scaler"};

/// "master", "ps", "worker", "scaler".
constexpr std::string_view ToString(NodeRole role) {
  return kNodeRoles[static_cast<size_t>(role)];
}
/// False, and `role` unchanged, if the word is unknown.
constexpr bool FromWord(std::string_view word, NodeRole* role) {
  const auto found = std::ranges::find(kNodeRoles, word);
  if (found == kNodeRoles.end()) return false;
  *role = static_cast<NodeRole>(found - kNodeRoles.begin());
  return true;
}
/// Every word, by number.
constexpr std::span<const std::string_view> WordsOf(NodeRole /*role*/) {
  return kNodeRoles;
}

}  // namespace muster
