#include "scaler/policy/server_straggler.h"

#include <optional>

namespace muster::scaler {
namespace {

std::optional<double> Per(std::chrono::microseconds time, uint64_t work, uint64_t work_min) {
  if (work == 0 || work < work_min) return std::nullopt;
  return static_cast<double>(time.count()) / static_cast<double>(work);
}

std::optional<double> ServiceTime(const Span& span, uint64_t work_min) {
  const ServerTotals &from = span.begin->server, &to = span.end->server;
  return Per(to.serving - from.serving, to.pulls - from.pulls + to.parts - from.parts, work_min);
}

std::optional<double> RoundTrip(const Span& span, uint64_t work_min) {
  const ServerTotals &from = span.begin->server, &to = span.end->server;
  return Per(to.peer_round_trip - from.peer_round_trip, to.peer_requests - from.peer_requests,
             work_min);
}

}  // namespace

ServerStragglerPolicy::ServerStragglerPolicy(const Options& options)
    : judge_("server-straggler", NodeRole::kServer,
             {{"service time per request", ServiceTime},
              {"round trip per request as workers see it", RoundTrip}},
             options) {}

}  // namespace muster::scaler
