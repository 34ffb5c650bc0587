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
  /// From this byte of the node's output on; absent: the last `lines` lines.
  std::optional<uint64_t> offset;
  uint32_t lines = 100;
};
struct SampleQuery {
  std::string node;  // "": all
  uint64_t after_wall_us = 0;
  double window_s = 600;
};

/// The job as of one moment, of the last second or so; the newest event is of now.
struct Picture {
  Job job;
  DatasetList datasets;
  NodeList nodes;
  PolicyList policies;
};
/// NotFound names the nodes that there are.
absl::StatusOr<const Node*> FindNode(const Picture& picture, const std::string& name);

/// The job as the routes see it and act on it; the scaler implements it, tests have a fake.
///
/// Thread-safety: every call may come from several threads at once. Calls may block, but each has a
/// deadline of its own of a few seconds, and at most six may be slow at a time: the server has
/// threads for eight (server/http_server.h).
///
/// Errors: kNotFound (no such node, event, policy, dataset), kInvalidArgument and kOutOfRange (a
/// value that only the job can judge), kFailedPrecondition and kAborted (not in this state),
/// kResourceExhausted (a budget), kUnavailable and kDeadlineExceeded (the master is away),
/// kUnimplemented. Their messages are shown to people: what was wrong, with which value, what to
/// do.
class JobApi {
 public:
  virtual ~JobApi() = default;

  virtual absl::StatusOr<std::shared_ptr<const Picture>> Look() = 0;
  /// May give fewer than `limit`, so that an answer stays small.
  virtual absl::StatusOr<ShardPage> Shards(const ShardQuery& query) = 0;
  virtual absl::StatusOr<ShardMap> MapOfShards(uint32_t dataset, uint32_t epoch) = 0;
  /// At most query.lines whole lines and about 1 MiB.
  virtual absl::StatusOr<LogChunk> Logs(const std::string& node, const LogQuery& query) = 0;
  virtual absl::StatusOr<PartitionPage> Partitions(uint64_t offset, uint32_t limit) = 0;
  /// Events with id > after, oldest first. One event is at most 16 KiB as JSON.
  virtual absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) = 0;
  virtual absl::StatusOr<Explanation> Explain(uint64_t event_id) = 0;
  virtual absl::StatusOr<Samples> GetSamples(const SampleQuery& query) = 0;

  /// The event that it caused, which is then also among Events().
  virtual absl::StatusOr<Event> Give(const Wish& wish) = 0;
};

}  // namespace muster::scaler::rest
