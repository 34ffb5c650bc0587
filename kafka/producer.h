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

/// Writes records. It is idempotent: if librdkafka repeats a request, no record is written twice.
/// Thread-safe.
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
    /// If none, the hash of the key decides, or any partition is taken.
    std::optional<int32_t> partition;
  };
  /// Queues a copy. While the queue is full, it waits, but at most 10 s (kUnavailable).
  virtual absl::Status Send(const Message& message) = 0;
  /// Waits until the brokers have everything that was queued. Returns the first error of a record
  /// since the last Flush, or kUnavailable after `timeout`.
  virtual absl::Status Flush(std::chrono::milliseconds timeout) = 0;
};

}  // namespace muster::kafka
