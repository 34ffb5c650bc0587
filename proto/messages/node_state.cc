#include "proto/messages/node_state.h"

#include <algorithm>
#include <array>

namespace muster {
namespace {

constexpr std::array<std::string_view, 8> kNodeStates = {
    "planned", "starting", "running", "lost", "draining", "exited", "finished", "waiting"};

constexpr std::array<std::string_view, 3> kDrainStates = {"none", "draining", "drained"};

}  // namespace

std::string_view ToString(NodeState state) {
  return kNodeStates[static_cast<size_t>(state)];
}

std::optional<NodeState> ParseNodeState(std::string_view word) {
  const auto found = std::find(kNodeStates.begin(), kNodeStates.end(), word);
  if (found == kNodeStates.end()) return std::nullopt;
  return static_cast<NodeState>(found - kNodeStates.begin());
}

std::string_view ToString(DrainState state) {
  return kDrainStates[static_cast<size_t>(state)];
}

bool FromWord(std::string_view word, DrainState* state) {
  const auto found = std::find(kDrainStates.begin(), kDrainStates.end(), word);
  if (found == kDrainStates.end()) return false;
  *state = static_cast<DrainState>(found - kDrainStates.begin());
  return true;
}

std::span<const std::string_view> WordsOf(NodeState /*state*/) {
  return kNodeStates;
}

std::span<const std::string_view> WordsOf(DrainState /*state*/) {
  return kDrainStates;
}

}  // namespace muster
