#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/admin.pb.h"

/// The JSON shapes of `--output json`; docs/cli.md documents them, so fields are only ever added.
/// Pure.
namespace muster {

/// ["file:line: reason", ...], some of the epoch's rejected records.
nlohmann::json RejectSamplesToJson(const v1::EpochStatus& epoch);
/// {"auc": 0.81, "logloss": 0.43, ...}: weighted means and areas under the ROC curve by name, null
/// where a value is not defined.
nlohmann::json MetricsToJson(const v1::EpochStatus& epoch);
nlohmann::json CountersToJson(const v1::JobCounters& counters);
/// How far a dataset that is a topic is, and how long its records take.
nlohmann::json StreamToJson(const v1::StreamStatus& stream);
nlohmann::json NodeToJson(const v1::NodeStatus& node);
nlohmann::json StatusToJson(const v1::JobStatus& status);
nlohmann::json ShardToJson(const v1::ShardStatus& shard);
nlohmann::json PartitionToJson(const v1::PartitionStatus& partition);
nlohmann::json EventToJson(const v1::Event& event);

/// "2026-01-31T12:34:56.789Z".
std::string WallToText(uint64_t wall_us);

}  // namespace muster
