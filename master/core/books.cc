#include "master/core/books.h"

#include <utility>

namespace muster {

Books::Books(CoreOptions job, MasterIncarnation own, DurableState* state, TimePoint now)
    : options(std::move(job)),
      incarnation(own),
      ledger(options.datasets, *state, options.limits.metric_names, options.evaluation),
      partitions(options.partitions, incarnation, *state, now),
      nodes(std::move(state->nodes), options.limits.nodes),
      events_(std::move(state->events)) {
  if (state->meta.has_value()) totals = state->meta->totals;
}

}  // namespace muster
