#pragma once

#include <optional>
#include <string>

#include "base/words/types.h"
#include "proto/messages/group_control.h"

namespace muster {

struct GroupBooks;

/// What the processes of a group say of stored states: whether they can read and write them.
struct StoredStates {
  /// Nobody has a state but the store, and every process that could read it has failed to: what the
  /// one says that lacks the fewest pieces.
  std::optional<UnreadableState> unreadable;
  std::string unreadable_by;
  /// There are no members.
  bool forms = false;
  /// Why the first member that cannot store its piece cannot; empty: all can, or nothing is stored.
  std::string unwritten;
  std::string unwritten_by;
  /// The step of the newest checkpoint; 0: none.
  StepNumber checkpoint;
};

/// Pure.
StoredStates StoredStatesOf(const GroupBooks& books);

}  // namespace muster
