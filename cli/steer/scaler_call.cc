#include "cli/steer/scaler_call.h"

#include <algorithm>

#include "base/status.h"
#include "cli/show/output.h"
#include "cli/state/scaler_link.h"
#include "scaler/decision/log/event_log.h"

namespace muster::steer {

using scaler::rest::Event;
using scaler::rest::Explanation;

absl::StatusOr<std::optional<Event>> TryOrder(const QueryOptions& query, const scaler::Wish& wish) {
  if (!query.master.empty()) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(query.target));
  if (absl::IsNotFound(state.ReadRestAddress().status())) return std::nullopt;
  const absl::StatusOr<scaler::rest::RestClient> client = FindScaler(state);
  absl::Status away = client.status();
  if (client.ok()) {
    absl::StatusOr<Event> event = client->Give(wish);
    if (event.ok()) return *std::move(event);
    away = event.status();
  }
  const bool not_done =
      absl::IsUnavailable(away) || absl::IsUnauthenticated(away) || absl::IsUnimplemented(away);
  // If no job runs, the caller reports that better: it looks for the master next.
  const bool no_job = absl::IsNotFound(state.ReadEndpoint().status());
  if (no_job && (not_done || !client.ok())) return std::nullopt;
  if (!not_done) return away;
  PrintNote(fmt::format("{}; the master is asked instead, without an event of the scaler",
                        Message(away)));
  return std::nullopt;
}

absl::StatusOr<Explanation> ExplainNow(const JobTarget& target, uint64_t id) {
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(target));
  const absl::StatusOr<scaler::rest::RestClient> client = FindScaler(state);
  if (client.ok()) return client->Explain(id);
  if (!absl::IsNotFound(client.status())) return client.status();
  absl::StatusOr<Explanation> stored = scaler::ReadExplanation(state.scaler(), id);
  const auto is_outcome = [](const Event& event) { return event.kind == "outcome"; };
  if (stored.ok() && std::ranges::any_of(stored->effects, is_outcome)) return stored;
  return absl::FailedPreconditionError(
      fmt::format("the job ended before the outcome of #{} was known", id));
}

absl::StatusOr<Event> AwaitOutcome(const std::function<absl::StatusOr<Explanation>()>& explain,
                                   uint64_t id, Patience* patience) {
  while (true) {
    const absl::StatusOr<Explanation> explanation = explain();
    const bool away =
        absl::IsUnavailable(explanation.status()) || absl::IsDeadlineExceeded(explanation.status());
    if (!explanation.ok() && !away) return explanation.status();
    if (explanation.ok()) {
      for (const Event& effect : explanation->effects) {
        if (effect.kind == "outcome") return effect;
      }
    }
    if (!patience->Wait(
            fmt::format("the outcome of #{}{}", id, away ? ", the scaler does not answer" : ""))) {
      return absl::DeadlineExceededError(fmt::format(
          "the outcome of #{} is not known yet; `muster explain {}` shows it as soon as it is", id,
          id));
    }
  }
}

int PrintRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return PrintError(Message(status), kExitUsage);
    case absl::StatusCode::kUnauthenticated:
      return PrintError(
          fmt::format("the scaler refuses the token that its token file held ({}); was the file "
                      "replaced just now? Try again",
                      Message(status)),
          kExitUnreachable);
    default:
      return PrintError(status);
  }
}

}  // namespace muster::steer
