#pragma once

#include <string>
#include <string_view>

#include "master/core/core_options.h"
#include "master/core/durable_state.h"
#include "master/core/event_log.h"
#include "master/core/kept_epochs.h"
#include "master/core/ledger.h"
#include "master/core/nodes/node_table.h"
#include "master/core/servers/partition_table.h"

namespace muster {

/// What the parts of MasterCore keep together: tables that the journal holds, each with rules and
/// tests of its own. Everything else has one owner among the parts. Pure; not thread-safe.
struct Books {
  /// Takes the nodes and events out of `state`. Requires MasterCore::CheckFits(options, state).
  Books(CoreOptions job, MasterIncarnation own, DurableState* state, TimePoint now);
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;

  /// Adds an event. `node` empty: it is the job's.
  void Say(StepTime at, MasterEventKind kind, std::string node, std::string_view text) {
    events.Add(at.wall, kind, std::move(node), text);
  }
  /// Says that the epoch is COMMITTED, if all its shards are and no further ones can come.
  void SayWhenCommitted(DatasetId dataset, EpochIndex epoch, StepTime at);
  const std::string& NameOf(DatasetId dataset) const {
    return options.datasets[dataset.value()].name;
  }

  const CoreOptions options;
  const MasterIncarnation incarnation;
  Ledger ledger;
  PartitionTable partitions;
  KeptEpochs kept;
  NodeTable nodes;
  EventLog events;
  JobTotals totals;
};

}  // namespace muster
