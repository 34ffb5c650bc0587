#include "master/core/books.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "proto/status/epoch_words.h"

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
  Say(at, kEpochCommittedKind, "",
      fmt::format("{}: {}, {}", EpochWords(NameOf(dataset), epoch.value()),
                  CountText(counts.shards, "shard"),
                  CountText(ledger.RecordsCommitted(dataset, epoch), "record")));
}

}  // namespace muster
