#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scaler/model/model.h"
#include "scaler/model/orders.h"
#include "security/tls_context.h"

namespace muster::scaler::rest {

struct RestClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::string token;
  /// What the server must prove; without it, HTTP is plain.
  std::optional<ClientTls> tls = std::nullopt;
  /// Of one question or order, from connecting to the last byte.
  std::chrono::milliseconds deadline{5'000};
  /// Called once in a call that has taken `slow_after` and goes on: people are told what they wait
  /// for. May be empty.
  std::function<void()> on_slow;
  std::chrono::milliseconds slow_after{2'000};
};

/// Asks the REST interface of a job on this machine, a connection for each call. Calls block.
///
/// Errors, with the server's words if it gave any: kUnavailable (nothing listens, the
/// server does not prove that it is the job's, or the job's master is away: nothing was done),
/// kDeadlineExceeded (no whole answer in time: whether an order arrived is not known),
/// kUnauthenticated (the token is wrong), kNotFound, kInvalidArgument (a value beyond its bounds),
/// kFailedPrecondition (not in this state, beyond the budget), kUnimplemented, kInternal (the
/// answer is not what it should be).
///
/// Thread-safe: it has no state but its options.
class RestClient {
 public:
  explicit RestClient(RestClientOptions options) : options_(std::move(options)) {}

  uint16_t port() const { return options_.port; }

  /// `target`: "/api/v1/...", encoded.
  absl::StatusOr<nlohmann::json> Get(const std::string& target) const;
  absl::StatusOr<nlohmann::json> Post(const std::string& target, const nlohmann::json& body) const;

  absl::StatusOr<Job> GetJob() const;
  absl::StatusOr<NodeList> Nodes() const;
  absl::StatusOr<Node> GetNode(const std::string& node) const;
  /// At most `limit` (1 to 1000) events with id > `after`, oldest first.
  absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) const;
  absl::StatusOr<Explanation> Explain(uint64_t event_id) const;
  absl::StatusOr<PolicyList> Policies() const;
  /// The event that it caused. Unimplemented: not for people.
  absl::StatusOr<Event> Give(const Wish& wish) const;

 private:
  const RestClientOptions options_;
};

/// What an answer says: its document, or the error that it is. Pure.
absl::StatusOr<nlohmann::json> ReadAnswer(int status, const std::string& body);

}  // namespace muster::scaler::rest
