#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/words/types.h"
#include "master/core/nodes/node_table.h"

namespace muster {

/// Knows when the job made progress last, and so which of its processes may be why it stands still.
/// Pure; not thread-safe.
class Standstill {
 public:
  /// A process that waits for a silent server waits for ever, and only the server can change that.
  static constexpr std::chrono::seconds kServerSilence{10};
  /// A trainer may load its libraries and data before it calls, and others may go on without it. So
  /// it is told of after so long, and only if nothing was done for as long.
  static constexpr std::chrono::seconds kWorkerSilence{60};

  /// `done` as in See.
  Standstill(DoneSeq done, TimePoint now) : done_(done), progress_at_(now) {}

  /// Takes the newest done of the job. Another one is progress.
  void See(DoneSeq done, TimePoint now);
  /// "ps-0 on host-a runs, but has not called for 14 s: it cannot reach the master, ...", of the
  /// server that has been silent for the longest time, or of such a trainer. Empty: no process is
  /// known to be the reason. Only processes that a supervisor has told of count, because nothing is
  /// known of others while they are silent.
  std::string Text(const std::map<std::string, Node>& nodes, TimePoint now) const;

 private:
  DoneSeq done_;
  TimePoint progress_at_;
};

}  // namespace muster
