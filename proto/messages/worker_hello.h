#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/job_identity.h"
#include "proto/messages/table_spec.h"

/// How a worker's session begins: Hello and RegisterTable of WorkerService, as plain values. Each
/// struct is the message of its name, and its list (proto/fields) says how.
namespace muster {

struct HelloRequest {
  std::string worker;  // node name
  uint64_t incarnation = 0;
  std::string sdk_version;
  /// Of this process; 0: not known.
  StartNumber start;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "incarnation", s.incarnation);
    f(3, "sdk_version", s.sdk_version, {.most = most::kNameBytes});
    f(4, "start", s.start);
  }
};

/// How to read the topic of a dataset.
struct TopicSource {
  std::string dataset;  // its name
  std::vector<std::string> brokers;
  std::map<std::string, std::string> properties;
  /// The places of the values, never the values.
  std::map<std::string, std::string> secrets;
  std::string group;
  uint64_t record_bytes_max = 0;
  std::string dead_letter_topic;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset);
    f(2, "brokers", s.brokers);
    f(3, "properties", s.properties);
    f(4, "secrets", s.secrets);
    f(5, "group", s.group);
    f(6, "record_bytes_max", s.record_bytes_max);
    f(7, "dead_letter_topic", s.dead_letter_topic);
  }
};

/// What the master tells a new session.
/// A dataset whose records are numbers, from 0 on.
struct NumberedDataset {
  std::string dataset;
  uint64_t records = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset, {.most = most::kNameBytes});
    f(2, "records", s.records);
  }
};

struct HelloResponse {
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
  /// The workers are one synchronous group (spec.group), and get no shards.
  bool group = false;
  /// Of a group: the place of its checkpoints, a folder or "s3://...".
  std::string group_directory;
  /// Of a group: the job has servers for tables.
  bool group_has_servers = false;
  /// The export from which tables start whose trainer names none; empty: no export.
  std::string warm_start;
  /// One for each dataset whose records are numbers.
  std::vector<NumberedDataset> numbered;
  static void Fields(auto& f, auto& s) {
    f(1, "job", s.job);
    f(2, "seed", s.seed);
    f(3, "partition_count", s.partition_count);
    f(4, "heartbeat_interval_ms", s.heartbeat_interval_ms);
    f(5, "unacknowledged_minibatches_max", s.unacknowledged_minibatches_max);
    f(6, "prefetch_minibatches", s.prefetch_minibatches);
    f(7, "shards_ahead", s.shards_ahead);
    f(8, "wire_encoding", s.wire_encoding);
    f(9, "lease_duration_ms", s.lease_duration_ms);
    f(10, "job_id", s.job_id);
    f(11, "topics", s.topics);
    f(12, "group", s.group);
    f(13, "group_directory", s.group_directory, {.raw = true});
    f(14, "group_has_servers", s.group_has_servers);
    f(15, "warm_start", s.warm_start, {.raw = true});
    f(16, "numbered", s.numbered);
  }
};
inline JobIdentity JobOf(const HelloResponse& hello) {
  return {hello.job_id, hello.job};
}

struct RegisterTableRequest {
  std::string worker;  // node name
  TableSpec table;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "table", s.table);
  }
};
struct RegisterTableResponse {
  TableId id;
  static void Fields(auto& f, auto& s) { f(1, "id", s.id); }
};

}  // namespace muster
