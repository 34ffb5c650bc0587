#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kafka/client_config.h"

namespace muster::kafka {

/// Writes records. Idempotent: a retry by librdkafka writes no record twice. Thread-safe.
class Producer {
 public:
  /// Errors are those of CheckConfig.
  static absl::StatusOr<std::unique_ptr<Producer>> Open(const ClientConfig& config);
  virtual ~Producer() = default;

  struct Message {
    std::string_view topic;
    std::optional<std::string_view> value;
    std::optional<std::string_view> key;
    std::vector<std::pair<std::string, std::string>> headers;
    /// None: by the hash of the key, or any.
    std::optional<int32_t> partition;
  };
  /// Queues a copy; waits while the queue is full, at most 10 s (kUnavailable).
  virtual absl::Status Send(const Message& message) = 0;
  /// Waits until everything queued is with the brokers; the first error of a record since the last
  /// Flush, or kUnavailable after `timeout`.
  virtual absl::Status Flush(std::chrono::milliseconds timeout) = 0;
};

}  // namespace muster::kafka
