#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sharding/control.h"
#include "sharding/job_identity.h"
#include "sharding/table_spec.h"

/// The messages of WorkerService (proto/control.proto) on the wire, written and read without the
/// Protobuf runtime. Pure functions.
namespace muster::sdk {

/// How to read the topic of a dataset.
struct TopicSource {
  std::string dataset;  // its name
  std::vector<std::string> brokers;
  std::map<std::string, std::string> properties;
  /// Where the values are to be found, never the values.
  std::map<std::string, std::string> secrets;
  std::string group;
  uint64_t record_bytes_max = 0;
  std::string dead_letter_topic;
};

/// What the master tells a new session.
struct HelloAnswer {
  std::string job;  // its name
  uint64_t seed = 0;
  uint32_t partition_count = 0;
  uint64_t heartbeat_interval_ms = 0;
  uint32_t unacknowledged_minibatches_max = 0;
  uint32_t prefetch_minibatches = 0;
  uint32_t shards_ahead = 0;
  std::string wire_encoding;
  uint64_t lease_duration_ms = 0;
  std::string job_id;
  std::vector<TopicSource> topics;
};

inline JobIdentity JobOf(const HelloAnswer& answer) {
  return {answer.job_id, answer.job};
}

std::string EncodeHelloRequest(std::string_view worker, uint64_t incarnation, uint64_t start,
                               std::string_view sdk_version);
std::string EncodeRegisterTableRequest(std::string_view worker, const TableSpec& table);
std::string EncodeExchangeRequest(const WorkerExchangeRequest& request);

/// Limits on what a master may answer; more is kInvalidArgument.
inline constexpr size_t kTextBytesMax = 4096;
inline constexpr size_t kItemsMax = 1 << 20;

/// Decoders skip fields they do not know. Malformed bytes and exceeded limits are kInvalidArgument.
absl::StatusOr<HelloAnswer> DecodeHelloResponse(std::string_view bytes);
absl::StatusOr<TableId> DecodeRegisterTableResponse(std::string_view bytes);
absl::StatusOr<WorkerExchangeReply> DecodeExchangeReply(std::string_view bytes);

}  // namespace muster::sdk
