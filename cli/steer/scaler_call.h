#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/ask/query_commands.h"
#include "cli/steer/patience.h"
#include "scaler/model/model.h"
#include "scaler/model/orders.h"

/// Shared code of the verbs that call the scaler.
namespace muster::steer {

/// Gives an order. None if it was not given and the master can be asked instead: no scaler serves,
/// or this user has no token for it (a line on stderr says so). An error if the order was refused,
/// or may have been carried out.
absl::StatusOr<std::optional<scaler::rest::Event>> TryOrder(const QueryOptions& query,
                                                            const scaler::Wish& wish);

/// Asks the scaler for the event. If no job runs any more, it reads the scaler's file, if that has
/// the outcome. FailedPrecondition if the job ended before the outcome.
absl::StatusOr<scaler::rest::Explanation> ExplainNow(const JobTarget& target, uint64_t id);

/// Waits for the outcome of the event `id`. `explain` requests the event. While that fails with
/// Unavailable or DeadlineExceeded (the scaler is being restarted), the wait continues.
/// DeadlineExceeded if patience ends first.
absl::StatusOr<scaler::rest::Event> AwaitOutcome(
    const std::function<absl::StatusOr<scaler::rest::Explanation>()>& explain, uint64_t id,
    Patience* patience);

/// Says on stderr why an order or a question was refused, and what can be done. Returns the exit
/// code. A node, policy or event that does not exist is a wrong argument.
int PrintRefusal(const absl::Status& status);

}  // namespace muster::steer
