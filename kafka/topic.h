#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kafka/client_config.h"

namespace muster::kafka {

/// How long a topic keeps records. It parses the settings `retention.ms` and `cleanup.policy` of
/// the brokers. None means forever, or for such a long time that it does not matter.
std::optional<std::chrono::milliseconds> RetentionOf(std::string_view retention_ms,
                                                     std::string_view cleanup_policy);

/// A topic: where its partitions begin and end, and the committed offsets of a group. Every call
/// waits for the brokers for at most `timeout`. kUnavailable may be temporary. kNotFound: there is
/// no such topic. kPermissionDenied: the user may not read it. Messages name the topic.
/// Thread-compatible.
class Topic {
 public:
  struct Options {
    std::string topic;
    /// The group for Commit.
    std::string group;
    std::chrono::milliseconds timeout{5'000};
  };
  /// It does not wait. Errors are those of CheckConfig.
  static absl::StatusOr<std::unique_ptr<Topic>> Open(const ClientConfig& config, Options options);
  virtual ~Topic() = default;

  /// The id of the cluster; empty if it has none.
  virtual absl::StatusOr<std::string> Cluster() = 0;
  /// Number of partitions.
  virtual absl::StatusOr<uint32_t> Partitions() = 0;
  /// Checks, without writing, that records can be written to another topic of the cluster: it
  /// exists, or the brokers create topics on the first write. Errors name it.
  virtual absl::Status CheckOther(const std::string& topic) = 0;
  struct Log {
    uint64_t begin = 0;
    /// The last stable offset. Every transaction below it is over.
    uint64_t stable_end = 0;
    /// The high watermark: the place of the next record, or a little before that. Not less than
    /// `stable_end`.
    uint64_t end = 0;
  };
  /// The logs of partitions 0 to `partitions` - 1, in order.
  virtual absl::StatusOr<std::vector<Log>> Logs(uint32_t partitions) = 0;
  /// For each partition, the first offset whose record is not older than `time` (since the Unix
  /// epoch). None if there is no such record.
  virtual absl::StatusOr<std::vector<std::optional<uint64_t>>> OffsetsAt(
      uint32_t partitions, std::chrono::milliseconds time) = 0;
  /// The shortest time for which records are kept. None means forever, or that this user may not
  /// ask.
  virtual absl::StatusOr<std::optional<std::chrono::milliseconds>> Retention() = 0;
  /// Commits the group's offsets, by partition, so that other tools can show the lag.
  virtual absl::Status Commit(const std::map<uint32_t, uint64_t>& offsets) = 0;
};

}  // namespace muster::kafka
