#pragma once

#include <string>

#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/nodes/write_trouble.h"
#include "master/core/servers/restore_trouble.h"
#include "master/group_core/stored_states.h"

namespace muster {

/// Watches whether a group can read and write its checkpoints, by the reports of its processes.
/// Adds events, knows what the status says, and ends the job if nobody can read the state. Servers
/// does the same for snapshots.
///
/// Owns since when the group cannot. Pure; not thread-safe.
class GroupStores {
 public:
  /// Both outlive it.
  GroupStores(const Books* books, JobLife* life) : books_(books), life_(life) {}

  /// Takes the newest reports. Call it about every 50 ms.
  void Take(const StoredStates& said, StepTime at);

  /// Why nobody has the state of the group; empty: it can be had.
  std::string ReadText() const;
  /// The job has failed for this.
  bool unrestorable() const;
  /// Why nothing is committed; empty: it is, or that is too short to tell.
  std::string WriteText(TimePoint now) const {
    return write_.Text(written_by_, WriteTrouble::kSnapshots, now);
  }

 private:
  void TakeReads(const StoredStates& said, StepTime at);
  void TakeWrites(const StoredStates& said, StepTime at);

  const Books* const books_;
  JobLife* const life_;
  RestoreTrouble read_;
  UnreadableState unreadable_;
  std::string unreadable_by_;
  WriteTrouble write_;
  std::string unwritten_, written_by_;
  StepNumber checkpoint_;  // when a piece could not be stored last
};

}  // namespace muster
