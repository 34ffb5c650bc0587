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

/// One worker or server as the master shows it.
struct MasterNode {
  MasterSays says;
  StartNumber start;         // that the master was told of; 0: none
  uint64_t incarnation = 0;  // of its process' session; totals start again with it
  /// Running totals; 0 when the process has not told them yet.
  WorkerTotals worker;
  ServerTotals server;
  /// As its process measured itself; none: not told.
  std::optional<NodeUsage> usage;
};

/// What sensors take from one answer of the master.
struct MasterDigest {
  TimePoint asked_at;
  JobState state = JobState::kUnknown;
  /// A new master counts the totals that it keeps itself (ServerTotals::peer_*) from 0 again.
  uint64_t master_incarnation = 0;
  /// Of all datasets; goes back when something must run again.
  uint64_t records_done = 0;
  uint64_t records_expected = 0;
  /// Of training datasets.
  uint64_t training_left = 0;
  /// JobView::backlog_records.
  std::optional<uint64_t> backlog;
  bool evaluating = false;    // shards of an evaluation are in the hands of workers
  bool leased = false;        // any shard is
  bool open = false;          // a topic may bring more shards
  bool sources_away = false;  // a topic cannot be reached
  std::map<std::string, MasterNode> nodes;
};

/// What a process measured of itself, as a host would have measured it.
NodeUsage ToNodeUsage(const ProcessUsage& usage);

MasterDigest Digest(const JobStatus& status, TimePoint asked_at);

}  // namespace muster::scaler
