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
  /// What the server must prove. Without it, the client speaks plain HTTP.
  std::optional<ClientTls> tls = std::nullopt;
  /// The deadline of one question or order, from connecting to the last byte.
  std::chrono::milliseconds deadline{5'000};
  /// Called once if a call takes longer than `slow_after`, so that people can be told what they
  /// wait for. May be empty.
  std::function<void()> on_slow;
  std::chrono::milliseconds slow_after{2'000};
};

/// Asks the REST interface of a job on this machine. Each call has a connection of its own, and
/// blocks.
///
/// Errors contain the server's words if it gave any:
///
/// - kUnavailable: nothing listens, the server does not prove that it is the job's, or the job's
///   master is away. Nothing was done.
/// - kDeadlineExceeded: no complete answer came in time. It is not known whether an order arrived.
/// - kUnauthenticated: the token is wrong.
/// - kNotFound, kUnimplemented.
/// - kInvalidArgument: a value is out of bounds.
/// - kFailedPrecondition: not possible in this state, or beyond the budget.
/// - kInternal: the answer is malformed.
///
/// Thread-safe: it has no state but its options.
class RestClient {
 public:
  explicit RestClient(RestClientOptions options) : options_(std::move(options)) {}

  uint16_t port() const { return options_.port; }

  /// `target` is "/api/v1/...", encoded.
  absl::StatusOr<nlohmann::json> Get(const std::string& target) const;
  absl::StatusOr<nlohmann::json> Post(const std::string& target, const nlohmann::json& body) const;

  absl::StatusOr<Job> GetJob() const;
  absl::StatusOr<NodeList> Nodes() const;
  absl::StatusOr<Node> GetNode(const std::string& node) const;
  /// Returns at most `limit` (1 to 1000) events with id > `after`, oldest first.
  absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) const;
  absl::StatusOr<Explanation> Explain(uint64_t event_id) const;
  absl::StatusOr<PolicyList> Policies() const;
  /// Gives an order. Returns the event that it caused. Errors: Unimplemented if people cannot give
  /// this order.
  absl::StatusOr<Event> Give(const Wish& wish) const;

 private:
  const RestClientOptions options_;
};

/// Returns the document of an answer, or the error that the answer reports. Pure.
absl::StatusOr<nlohmann::json> ReadAnswer(int status, const std::string& body);

}  // namespace muster::scaler::rest
