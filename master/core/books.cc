#include "master/core/books.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

Books::Books(CoreOptions job, MasterIncarnation own, DurableState* state, TimePoint now)
    : options(std::move(job)),
      incarnation(own),
      ledger(options.datasets, *state, options.limits.metric_names),
      partitions(options.partitions, incarnation, *state, now),
      kept(state->kept, options.partitions),
      nodes(std::move(state->nodes), options.limits.nodes),
      events(std::move(state->events)) {
  if (state->meta.has_value()) totals = state->meta->totals;
}

void Books::SayWhenCommitted(DatasetId dataset, EpochIndex epoch, StepTime at) {
  const EpochCounts counts = ledger.queue().Counts(dataset, epoch);
  if (counts.committed < counts.shards || ledger.queue().IsOpen(dataset)) return;
  Say(at, "epoch-committed", "",
      fmt::format("epoch {} of dataset '{}': {} shards, {} records", epoch.value() + 1,
                  NameOf(dataset), counts.shards, ledger.RecordsCommitted(dataset, epoch)));
}

}  // namespace muster
