#include "proto/messages/node_state.h"

#include <algorithm>
#include <array>

namespace muster {
namespace {

constexpr std::array<std::string_view, 7> kNodeStates = {"planned",  "starting", "running", "lost",
                                                         "draining", "exited",   "finished"};

}  // namespace

std::string_view ToString(NodeState state) {
  return kNodeStates[static_cast<size_t>(state)];
}

std::optional<NodeState> ParseNodeState(std::string_view word) {
  const auto found = std::find(kNodeStates.begin(), kNodeStates.end(), word);
  if (found == kNodeStates.end()) return std::nullopt;
  return static_cast<NodeState>(found - kNodeStates.begin());
}

}  // namespace muster
