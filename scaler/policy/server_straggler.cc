#include "scaler/policy/server_straggler.h"

namespace muster::scaler {
namespace {

/// A restart of the only server stops the whole job for a restore and a replay, so more proof is
/// needed.
constexpr double kAloneFactor = 2;

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
             {{.name = "service time per request",
               .effort = ServiceTime,
               .alone_factor = kAloneFactor},
              {.name = "round trip per request as workers see it",
               .effort = RoundTrip,
               .alone = false}},
             options) {}

}  // namespace muster::scaler
