#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scaler/model/model.h"
#include "scaler/model/orders.h"

namespace muster::scaler::rest {

struct ShardQuery {
  std::string state;  // leased, done, failed; "": all three
  uint64_t offset = 0;
  uint32_t limit = 100;
};
struct LogQuery {
  /// Output from this byte on. If absent, the last `lines` lines.
  std::optional<uint64_t> offset;
  uint32_t lines = 100;
};
struct SampleQuery {
  std::string node;  // "": all
  uint64_t after_wall_us = 0;
  double window_s = 600;
};

/// The job as it was at one moment of the last second or so. The newest event is of now.
struct Picture {
  Job job;
  DatasetList datasets;
  NodeList nodes;
  PolicyList policies;
};
/// Errors: NotFound lists the nodes that exist.
absl::StatusOr<const Node*> FindNode(const Picture& picture, const std::string& name);

/// The routes see the job through this interface and act on it. The scaler implements it, and tests
/// have a fake.
///
/// Thread-safety: several threads may call it at once. A call may block, but it has a deadline of
/// its own of a few seconds. At most six calls may be slow at a time, because the server has
/// threads for eight (server/http_server.h).
///
/// Errors: kNotFound (no such node, event, policy, dataset), kInvalidArgument and kOutOfRange (a
/// value that only the job can judge), kFailedPrecondition and kAborted (not possible in this
/// state), kResourceExhausted (a budget), kUnavailable and kDeadlineExceeded (the master is away),
/// kUnimplemented. People see the messages, so a message says what was wrong, with which value, and
/// what to do.
class JobApi {
 public:
  virtual ~JobApi() = default;

  virtual absl::StatusOr<std::shared_ptr<const Picture>> Look() = 0;
  /// It may return fewer than `limit`, so that an answer stays small.
  virtual absl::StatusOr<ShardPage> Shards(const ShardQuery& query) = 0;
  virtual absl::StatusOr<ShardMap> MapOfShards(uint32_t dataset, uint32_t epoch) = 0;
  /// It returns at most query.lines whole lines and about 1 MiB.
  virtual absl::StatusOr<LogChunk> Logs(const std::string& node, const LogQuery& query) = 0;
  virtual absl::StatusOr<PartitionPage> Partitions(uint64_t offset, uint32_t limit) = 0;
  /// Events with id > after, oldest first. One event is at most 16 KiB as JSON.
  virtual absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) = 0;
  virtual absl::StatusOr<Explanation> Explain(uint64_t event_id) = 0;
  virtual absl::StatusOr<Samples> GetSamples(const SampleQuery& query) = 0;

  /// Returns the event that the order caused. It is then also among Events().
  virtual absl::StatusOr<Event> Give(const Wish& wish) = 0;
};

}  // namespace muster::scaler::rest
