#include "scaler/policy/worker_straggler.h"

#include <optional>

namespace muster::scaler {
namespace {

/// Waits depend on what other nodes do, so they are a weaker sign than computing.
constexpr double kWaitsFactor = 1.2;
constexpr std::chrono::seconds kWaitsFresh{5};

Effort Computing(const Span& span) {
  const WorkerTotals &from = span.begin->worker, &to = span.end->worker;
  return {.time = to.computing - from.computing, .work = to.minibatches - from.minibatches};
}

/// Computing time and waits for servers together. It also shows a slow network, and threads of the
/// data plane that get too little CPU. Waits for shards are not in it, because they do not make a
/// node slow.
Effort ComputingAndServers(const Span& span) {
  const WorkerTotals &from = span.begin->worker, &to = span.end->worker;
  return {.time = to.computing - from.computing + to.waiting_pulls - from.waiting_pulls +
                  to.waiting_pushes - from.waiting_pushes,
          .work = to.minibatches - from.minibatches};
}

void AddWaits(const JobView& view, Proposal* proposal) {
  const NodeView* node = FindNode(view, proposal->target);
  if (node == nullptr || proposal->evidence.empty()) return;
  const std::chrono::seconds window = proposal->evidence.front().window;
  const std::optional<Span> span =
      SpanSince(*node, view.now - window - std::chrono::seconds(1), std::chrono::seconds(1));
  if (!span.has_value()) return;
  const WorkerTotals &from = span->begin->worker, &to = span->end->worker;
  const auto add = [&](const char* name, std::chrono::microseconds waited) {
    proposal->evidence.push_back({name, span->Rate(waited), "s/s", span->window()});
  };
  add("waiting for shards", to.waiting_shards - from.waiting_shards);
  add("waiting for pulls", to.waiting_pulls - from.waiting_pulls);
  add("waiting for pushes", to.waiting_pushes - from.waiting_pushes);
}

}  // namespace

WorkerStragglerPolicy::WorkerStragglerPolicy(const Options& options)
    : judge_("worker-straggler", NodeRole::kWorker,
             {{.name = "computing time per minibatch", .effort = Computing},
              {.name = "computing and waiting for servers per minibatch",
               .effort = ComputingAndServers,
               .alone = false,
               .ratio_factor = kWaitsFactor,
               .fresh = kWaitsFresh}},
             options) {}

std::vector<Proposal> WorkerStragglerPolicy::Step(const JobView& view) {
  std::vector<Proposal> proposals = judge_.Step(view);
  for (Proposal& proposal : proposals) AddWaits(view, &proposal);
  return proposals;
}

}  // namespace muster::scaler
