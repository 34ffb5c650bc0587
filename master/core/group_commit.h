#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "master/core/master_core.h"

namespace muster {

/// Lets requests share one sync of the journal (docs/protocol.md, section 7). Every request of a
/// batch steps the core. All their mutations are written and synced together. Only then are the
/// answers sent, and the files deleted that no manifest names any more. This class says what to
/// write and what follows; the caller does it. Pure except for the callbacks; not thread-safe.
class GroupCommit {
 public:
  /// One request. `answer` gets the step's own status, once, after the sync.
  ///
  /// With `ready`, an OK request is kept until `ready` returns true. It is asked after the steps of
  /// every batch, before the sync, and prepares the answer when it returns true.
  struct Item {
    std::function<absl::Status(MasterCore&, StepTime)> step;
    std::function<void(const absl::Status&)> answer;
    std::function<bool(MasterCore&, StepTime)> ready = {};
  };

  /// `core` outlives it. The core is ticked every `tick` at most, for the first time that long
  /// after `now`.
  GroupCommit(MasterCore* core, std::chrono::milliseconds tick, TimePoint now)
      : core_(core), tick_(tick), ticked_at_(now) {}

  /// Steps the core for every item, and ticks it if it is time. Returns what must be in the journal
  /// before Synced() is called. Requires that the last batch was synced.
  std::vector<Mutation> Step(std::vector<Item> items, StepTime at);
  /// The mutations are in the journal, so the answers are sent. Returns the snapshot files
  /// (relative names) that may be deleted now.
  std::vector<std::string> Synced();
  /// Call it if the mutations may be missing from the journal, or if there is no further batch.
  /// Returns all items, also the kept ones; their answers must not use the steps.
  std::vector<Item> TakeItems();

 private:
  void AnswerAll();
  /// Moves items that are not ready from items_ to kept_, and kept ones that are ready to items_.
  void KeepWaiting(StepTime at);

  MasterCore* const core_;
  const std::chrono::milliseconds tick_;
  TimePoint ticked_at_;
  std::vector<Item> items_;
  std::vector<absl::Status> statuses_;
  /// OK, and not ready.
  std::vector<Item> kept_;
  /// Nothing of the last batch waits for the journal.
  bool synced_ = true;
};

}  // namespace muster
