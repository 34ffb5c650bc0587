#include "scaler/policy/server_straggler.h"

namespace muster::scaler {
namespace {

Effort ServiceTime(const Span& span) {
  const ServerTotals &from = span.begin->server, &to = span.end->server;
  return {.time = to.serving - from.serving,
          .work = to.pulls - from.pulls + to.parts - from.parts,
          .bytes = to.moved_bytes - from.moved_bytes};
}

Effort RoundTrip(const Span& span) {
  const ServerTotals &from = span.begin->server, &to = span.end->server;
  return {.time = to.peer_round_trip - from.peer_round_trip,
          .work = to.peer_requests - from.peer_requests,
          .bytes = to.moved_bytes - from.moved_bytes};
}

}  // namespace

ServerStragglerPolicy::ServerStragglerPolicy(const Options& options)
    : judge_("server-straggler", NodeRole::kServer,
             {{"service time per request", ServiceTime},
              {"round trip per request as workers see it", RoundTrip}},
             options) {}

}  // namespace muster::scaler
