#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/ask/query_commands.h"
#include "cli/steer/patience.h"
#include "scaler/model/model.h"
#include "scaler/model/orders.h"

/// What the verbs share that speak to the scaler.
namespace muster::steer {

/// Gives an order. Nothing when it was not given and the master may be asked
/// instead: no scaler serves, or it has no token for us; a word on stderr says why, unless there
/// is none. An error when it was refused, or may have been carried out.
absl::StatusOr<std::optional<scaler::rest::Event>> TryOrder(const QueryOptions& query,
                                                            const scaler::Wish& wish);

/// The event as the scaler has it; when no job runs any more, as its file does, if its outcome is
/// there. FailedPrecondition: the job ended before that.
absl::StatusOr<scaler::rest::Explanation> ExplainNow(const JobTarget& target, uint64_t id);

/// The outcome of the event `id`, as soon as there is one. `explain` asks for the event; while it
/// fails with Unavailable or DeadlineExceeded (a scaler that is started again) waiting goes on.
/// DeadlineExceeded when patience ends first.
absl::StatusOr<scaler::rest::Event> AwaitOutcome(
    const std::function<absl::StatusOr<scaler::rest::Explanation>()>& explain, uint64_t id,
    Patience* patience);

/// Says on stderr why an order or a question was refused, and what can be done. Returns the exit
/// code: a node, policy or event that is not there is a wrong argument.
int PrintRefusal(const absl::Status& status);

}  // namespace muster::steer
