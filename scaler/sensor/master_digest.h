#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/words/types.h"
#include "host/messages.h"
#include "proto/status/job_status.h"
#include "scaler/model/job_view.h"
#include "scaler/model/kept_node.h"

namespace muster::scaler {

/// One worker or server, as the master reports it.
struct MasterNode {
  MasterSays says;
  StartNumber start;         // as the master was told; 0: none
  uint64_t incarnation = 0;  // of its process' session; each incarnation has new totals
  /// Running totals; 0 if the process has not reported them yet.
  WorkerTotals worker;
  ServerTotals server;
  /// What the process measured of itself. None if it was not reported.
  std::optional<NodeUsage> usage;
};

/// What sensors take from one answer of the master.
struct MasterDigest {
  TimePoint asked_at;
  JobState state = JobState::kUnknown;
  /// A new master begins at 0 with the totals that it counts itself (ServerTotals::peer_*).
  uint64_t master_incarnation = 0;
  /// Records done in all datasets. It goes back if some must run again.
  uint64_t records_done = 0;
  uint64_t records_expected = 0;
  /// Records left in training datasets.
  uint64_t training_left = 0;
  /// The same as JobView::backlog_records.
  std::optional<uint64_t> backlog;
  bool evaluating = false;    // workers hold shards of an evaluation
  bool leased = false;        // workers hold some shard
  bool open = false;          // a topic may bring more shards
  bool sources_away = false;  // a topic cannot be reached
  std::map<std::string, MasterNode> nodes;
};

/// Converts what a process measured of itself into the form of a host's measurement.
NodeUsage ToNodeUsage(const ProcessUsage& usage);

MasterDigest Digest(const JobStatus& status, TimePoint asked_at);

}  // namespace muster::scaler
