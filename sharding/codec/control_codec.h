#pragma once

#include "absl/status/statusor.h"
#include "proto/control.pb.h"
#include "sharding/control.h"

/// sharding/control.h to and from proto/control.proto, field by field. ToProto never fails.
/// FromProto takes what a peer sent: it checks every enum and every count against the limits below
/// and answers kInvalidArgument naming the field and the value. Pure, thread-safe.
namespace muster {

/// Limits on what one message may carry.
inline constexpr int kLeasesPerCallMax = 100'000;
inline constexpr int kPartitionsMax = 65'536;
inline constexpr int kServersMax = 4'096;
inline constexpr int kLanesMax = 256;
inline constexpr int kAddressesPerLaneMax = 8;
inline constexpr int kTablesMax = 4'096;
inline constexpr int kFilesPerChainMax = 1'024;
inline constexpr int kMetricsPerShardMax = 256;
inline constexpr int kIntervalsMax = 10'000'000;
inline constexpr size_t kNameBytesMax = 256;
inline constexpr size_t kTextBytesMax = 4'096;

void ToProto(const TableSpec& from, v1::Table* to);
void ToProto(const ShardId& from, v1::ShardId* to);
void ToProto(const ShardMetrics& from, v1::ShardMetrics* to);
void ToProto(const Manifest& from, v1::Manifest* to);
void ToProto(const PartitionMap& from, v1::PartitionMap* to);
void ToProto(const ServerCounters& from, v1::ServerCounters* to);
void ToProto(const PartitionTraffic& from, v1::PartitionTraffic* to);
void ToProto(const WorkerTimes& from, v1::WorkerTimes* to);
void ToProto(const WorkerExchangeRequest& from, v1::WorkerExchangeRequest* to);
void ToProto(const WorkerExchangeReply& from, v1::WorkerExchangeReply* to);
void ToProto(const ServerExchangeRequest& from, v1::ServerExchangeRequest* to);
void ToProto(const ServerExchangeReply& from, v1::ServerExchangeReply* to);
/// Only the fields of sharding/control.h; the caller sets the others (version; job, seed, ...).
void ToProto(const RegisterServerRequest& from, v1::RegisterServerRequest* to);
void ToProto(const RegisterServerReply& from, v1::RegisterServerReply* to);

ShardId FromProto(const v1::ShardId& from);
ServerCounters FromProto(const v1::ServerCounters& from);
PartitionTraffic FromProto(const v1::PartitionTraffic& from);
WorkerTimes FromProto(const v1::WorkerTimes& from);
absl::StatusOr<TableSpec> FromProto(const v1::Table& from);
absl::StatusOr<ShardMetrics> FromProto(const v1::ShardMetrics& from);
absl::StatusOr<Manifest> FromProto(const v1::Manifest& from);
absl::StatusOr<PartitionMap> FromProto(const v1::PartitionMap& from);
absl::StatusOr<WorkerExchangeRequest> FromProto(const v1::WorkerExchangeRequest& from);
absl::StatusOr<WorkerExchangeReply> FromProto(const v1::WorkerExchangeReply& from);
absl::StatusOr<ServerExchangeRequest> FromProto(const v1::ServerExchangeRequest& from);
absl::StatusOr<ServerExchangeReply> FromProto(const v1::ServerExchangeReply& from);
absl::StatusOr<RegisterServerRequest> FromProto(const v1::RegisterServerRequest& from);
RegisterServerReply FromProto(const v1::RegisterServerReply& from);

}  // namespace muster
