#include "tests/sim/env.h"

#include "tests/sim/sim_master.h"
#include "tests/sim/sim_server.h"

namespace muster::sim {

namespace {

WorkloadKind KindOf(const Knobs& knobs) {
  if (knobs.group.has_value()) return WorkloadKind::kGroup;
  return knobs.stream ? WorkloadKind::kTopic : WorkloadKind::kFiles;
}

}  // namespace

Env::Env(uint64_t seed, const Knobs& knobs, bool print)
    : seed(seed),
      knobs(knobs),
      workload(Workload::Of(knobs.partitions, KindOf(knobs))),
      network(HashWords(seed, 101), &scheduler),
      trace(print),
      disk(knobs.disk_max, &workload, &probes),
      oracle(&workload, &disk),
      // The odd member has added gradients of another state.
      judge(&oracle, &model_store,
            {.exact = knobs.group_exact && !knobs.group_odd_apply.has_value(),
             .tables = knobs.servers > 0}),
      journal(HashWords(seed, 103), &scheduler, {knobs.sync_max, knobs.wire},
              [this](const std::vector<Mutation>& mutations, const DurableState& state) {
                if (this->knobs.servers > 0) {
                  oracle.OnDurable(mutations, state);
                } else {
                  oracle.OnDurableWithoutServers(mutations);
                }
                if (this->knobs.group.has_value()) judge.OnDurable(mutations, state);
              }) {}

SimMaster* Env::MasterFor(Endpoint from) const {
  for (const LostMaster& lost : lost_masters) {
    const bool reached = lost.until > scheduler.now() && lost.reached_by.contains(from);
    if (reached && lost.master->serving() && lost.master->process()->alive) return lost.master;
  }
  return master;
}

SimServer* Env::FindServer(ServerId id, ServerIncarnation incarnation, bool dead_too) const {
  for (const auto& server : servers) {
    if (server->slot() == id.value() && server->incarnation() == incarnation &&
        (dead_too || server->process()->alive)) {
      return server.get();
    }
  }
  return nullptr;
}

SimServer* Env::Listener(ServerId id, ServerIncarnation incarnation) const {
  SimServer* const exact = FindServer(id, incarnation);
  if (exact != nullptr || knobs.greets) return exact;
  SimServer* newest = nullptr;
  for (const auto& server : servers) {
    if (server->slot() == id.value() && server->process()->alive) newest = server.get();
  }
  return newest;
}

void Env::Exit(const ProcessRef& process, const ProcessEnd& end) {
  if (!process->alive) return;
  process->alive = false;
  Say(*process, "ends: signal {}, exit code {}", end.signal, end.exit_code);
  exited(process, end);
}

}  // namespace muster::sim
