#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "master/core/core_options.h"
#include "master/core/durable_state.h"
#include "master/core/event_log.h"
#include "master/core/ledger.h"
#include "master/core/nodes/node_table.h"
#include "master/core/servers/partition_table.h"

namespace muster {

/// What the parts of MasterCore keep together: tables that the journal holds, each with rules and
/// tests of its own. Everything else has one owner among the parts.
///
/// Every part has a `const Books*`, with which it reads all of them and adds events. A part that
/// changes a table also has a pointer to this table. So the constructor of a part says what the
/// part changes. Only MasterCore has the Books themselves. Pure; not thread-safe.
struct Books {
  /// Takes the nodes and events out of `state`. Requires MasterCore::CheckFits(options, state).
  Books(CoreOptions job, MasterIncarnation own, DurableState* state, TimePoint now);
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;

  /// Adds an event; any part may do so. `node` empty: it is the job's.
  void Say(StepTime at, MasterEventKind kind, std::string node, std::string_view text) const {
    events_.Add(at.wall, kind, std::move(node), text);
  }
  const EventLog& events() const { return events_; }
  /// As EventLog::Collect.
  void CollectEvents(std::vector<Mutation>* mutations) { events_.Collect(mutations); }
  const std::string& NameOf(DatasetId dataset) const {
    return options.datasets[dataset.value()].name;
  }

  const CoreOptions options;
  const MasterIncarnation incarnation;
  Ledger ledger;
  PartitionTable partitions;
  NodeTable nodes;
  JobTotals totals;

 private:
  mutable EventLog events_;
};

}  // namespace muster
