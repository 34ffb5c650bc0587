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

/// How long a topic keeps records, from its settings `retention.ms` and `cleanup.policy` as the
/// brokers write them. None: forever, or for a time too long to matter.
std::optional<std::chrono::milliseconds> RetentionOf(std::string_view retention_ms,
                                                     std::string_view cleanup_policy);

/// A topic: where its partitions begin and end, and the committed offsets of a group. Every call
/// waits for the brokers for at most `timeout`. kUnavailable may be temporary; kNotFound: there is
/// no such topic; kPermissionDenied: it may not be read. Messages name the topic.
/// Thread-compatible.
class Topic {
 public:
  struct Options {
    std::string topic;
    /// For Commit.
    std::string group;
    std::chrono::milliseconds timeout{5'000};
  };
  /// Does not wait. Errors are those of CheckConfig.
  static absl::StatusOr<std::unique_ptr<Topic>> Open(const ClientConfig& config, Options options);
  virtual ~Topic() = default;

  /// The id of the cluster; empty if it has none.
  virtual absl::StatusOr<std::string> Cluster() = 0;
  /// Number of partitions.
  virtual absl::StatusOr<uint32_t> Partitions() = 0;
  /// Checks, without writing, that records can be written to another topic of the cluster: it
  /// exists,
  /// or the brokers create topics on the first write. Errors name it.
  virtual absl::Status CheckOther(const std::string& topic) = 0;
  struct Log {
    uint64_t begin = 0;
    /// The last stable offset: below it every transaction is over.
    uint64_t stable_end = 0;
    /// The high watermark: where the next record goes, or a little before. Not less than
    /// `stable_end`.
    uint64_t end = 0;
  };
  /// Of partitions 0 to `partitions` - 1, in order.
  virtual absl::StatusOr<std::vector<Log>> Logs(uint32_t partitions) = 0;
  /// The first offset of each whose record is not older than `time` (since the Unix epoch); none
  /// where there is no such record.
  virtual absl::StatusOr<std::vector<std::optional<uint64_t>>> OffsetsAt(
      uint32_t partitions, std::chrono::milliseconds time) = 0;
  /// The shortest time for which records are kept; none: forever, or this user may not ask.
  virtual absl::StatusOr<std::optional<std::chrono::milliseconds>> Retention() = 0;
  /// Commits the group's offsets, by partition, for tools that show lag.
  virtual absl::Status Commit(const std::map<uint32_t, uint64_t>& offsets) = 0;
};

}  // namespace muster::kafka
