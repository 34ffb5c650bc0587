#include "base/status.h"
#include "sharding/codec/control_codec.h"
#include "sharding/codec/limits.h"

namespace muster {
namespace {

using codec_internal::CheckCount;
using codec_internal::CheckText;

using Lanes = std::vector<std::vector<std::string>>;

template <typename Message>
void LanesToProto(const Lanes& lanes, Message* to) {
  for (const std::vector<std::string>& lane : lanes) {
    v1::Lane* item = to->add_lanes();
    for (const std::string& address : lane) item->add_addresses(address);
  }
}

template <typename Message>
absl::StatusOr<Lanes> LanesFromProto(const Message& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("lanes", from.lanes_size(), kLanesMax));
  Lanes lanes;
  for (const v1::Lane& item : from.lanes()) {
    MUSTER_RETURN_IF_ERROR(
        CheckCount("lanes.addresses", item.addresses_size(), kAddressesPerLaneMax));
    for (const std::string& address : item.addresses()) {
      MUSTER_RETURN_IF_ERROR(CheckText("lanes.addresses", address, kNameBytesMax));
    }
    lanes.emplace_back(item.addresses().begin(), item.addresses().end());
  }
  return lanes;
}

void ForgetToProto(const ForgetState& from, v1::ForgetState* to) {
  to->set_version(from.version);
  to->set_floor(from.floor.value());
  for (const auto& [key, set] : from.shards) {
    v1::EpochIntervals* item = to->add_shards();
    item->set_dataset(key.first.value());
    item->set_epoch(key.second.value());
    for (const auto& [begin, end] : set.intervals()) {
      v1::Interval* interval = item->add_intervals();
      interval->set_begin(begin);
      interval->set_end(end);
    }
  }
}

absl::StatusOr<ForgetState> ForgetFromProto(const v1::ForgetState& from) {
  ForgetState to;
  to.version = from.version();
  to.floor = LeaseToken::FromValue(from.floor());
  for (const v1::EpochIntervals& item : from.shards()) {
    MUSTER_RETURN_IF_ERROR(CheckCount("forget.intervals", item.intervals_size(), kIntervalsMax));
    IntervalSet& set = to.shards[{DatasetId(item.dataset()), EpochIndex(item.epoch())}];
    for (const v1::Interval& interval : item.intervals()) {
      if (interval.begin() >= interval.end()) {
        return absl::InvalidArgumentError(
            fmt::format("forget.intervals: [{}, {}) is empty", interval.begin(), interval.end()));
      }
      set.Add(interval.begin(), interval.end());
    }
  }
  return to;
}

absl::Status CommandsFromProto(const v1::ServerExchangeReply& from, ServerExchangeReply* to) {
  for (const v1::OwnCommand& item : from.owns()) {
    OwnCommand& own = to->owns.emplace_back();
    own.partition = PartitionId(item.partition());
    own.epoch = OwnerEpoch(item.epoch());
    own.since = OwnerEpoch(item.since());
    own.copy = OwnerEpoch(item.copy());
    own.restored = item.restored();
    MUSTER_ASSIGN_OR_RETURN(own.manifest, FromProto(item.manifest()));
  }
  for (const v1::SnapshotCommand& item : from.snapshots()) {
    to->snapshots.push_back({PartitionId(item.partition()), OwnerEpoch(item.epoch()),
                             DoneSeq(item.cut()), SnapshotNumber::FromValue(item.number())});
  }
  for (const v1::AcceptedSnapshot& item : from.accepted()) {
    to->accepted.push_back(
        {PartitionId(item.partition()), SnapshotNumber::FromValue(item.number())});
  }
  return absl::OkStatus();
}

void CommandsToProto(const ServerExchangeReply& from, v1::ServerExchangeReply* to) {
  for (const OwnCommand& own : from.owns) {
    v1::OwnCommand* item = to->add_owns();
    item->set_partition(own.partition.value());
    item->set_epoch(own.epoch.value());
    item->set_since(own.since.value());
    item->set_copy(own.copy.value());
    item->set_restored(own.restored);
    ToProto(own.manifest, item->mutable_manifest());
  }
  for (const SnapshotCommand& snapshot : from.snapshots) {
    v1::SnapshotCommand* item = to->add_snapshots();
    item->set_partition(snapshot.partition.value());
    item->set_epoch(snapshot.epoch.value());
    item->set_cut(snapshot.cut.value());
    item->set_number(snapshot.number.value());
  }
  for (const AcceptedSnapshot& accepted : from.accepted) {
    v1::AcceptedSnapshot* item = to->add_accepted();
    item->set_partition(accepted.partition.value());
    item->set_number(accepted.number.value());
  }
}

}  // namespace

void ToProto(const PartitionMap& from, v1::PartitionMap* to) {
  to->set_version(from.version.value());
  to->set_restore_epoch(from.restore_epoch.value());
  for (const PartitionEntry& entry : from.partitions) {
    v1::PartitionEntry* item = to->add_partitions();
    item->set_owner(entry.owner.value());
    item->set_owner_incarnation(entry.owner_incarnation.value());
    item->set_epoch(entry.epoch.value());
    item->set_since(entry.since.value());
    item->set_copy(entry.copy.value());
    item->set_restored(entry.restored);
    item->set_restored_at(entry.restored_at.value());
  }
  for (const ServerEndpoint& server : from.servers) {
    v1::ServerEndpoint* item = to->add_servers();
    item->set_id(server.id.value());
    item->set_incarnation(server.incarnation.value());
    item->set_name(server.name);
    LanesToProto(server.lanes, item);
  }
}

absl::StatusOr<PartitionMap> FromProto(const v1::PartitionMap& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("map.partitions", from.partitions_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("map.servers", from.servers_size(), kServersMax));
  PartitionMap to;
  to.version = MapVersion(from.version());
  to.restore_epoch = RestoreEpoch(from.restore_epoch());
  for (const v1::PartitionEntry& item : from.partitions()) {
    to.partitions.push_back({ServerId(item.owner()), ServerIncarnation(item.owner_incarnation()),
                             OwnerEpoch(item.epoch()), OwnerEpoch(item.since()),
                             OwnerEpoch(item.copy()), item.restored(),
                             RestoreEpoch(item.restored_at())});
  }
  for (const v1::ServerEndpoint& item : from.servers()) {
    MUSTER_RETURN_IF_ERROR(CheckText("map.servers.name", item.name(), kNameBytesMax));
    ServerEndpoint& server = to.servers.emplace_back();
    server.id = ServerId(item.id());
    server.incarnation = ServerIncarnation(item.incarnation());
    server.name = item.name();
    MUSTER_ASSIGN_OR_RETURN(server.lanes, LanesFromProto(item));
  }
  return to;
}

void ToProto(const Manifest& from, v1::Manifest* to) {
  to->set_number(from.number.value());
  to->set_cut(from.cut.value());
  for (const SnapshotFile& file : from.files) {
    v1::SnapshotFile* item = to->add_files();
    item->set_name(file.name);
    item->set_bytes(file.bytes);
    item->set_number(file.number.value());
  }
}

absl::StatusOr<Manifest> FromProto(const v1::Manifest& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("manifest.files", from.files_size(), kFilesPerChainMax));
  Manifest to;
  to.number = SnapshotNumber::FromValue(from.number());
  to.cut = DoneSeq(from.cut());
  for (const v1::SnapshotFile& item : from.files()) {
    MUSTER_RETURN_IF_ERROR(CheckText("manifest.files.name", item.name(), kNameBytesMax));
    to.files.push_back({item.name(), item.bytes(), SnapshotNumber::FromValue(item.number())});
  }
  return to;
}

void ToProto(const ServerCounters& from, v1::ServerCounters* to) {
  to->set_pulls(from.pulls);
  to->set_pulled_rows(from.pulled_rows);
  to->set_parts_applied(from.parts_applied);
  to->set_parts_skipped(from.parts_skipped);
  to->set_parts_stale(from.parts_stale);
  to->set_parts_wrong_owner(from.parts_wrong_owner);
  to->set_rows(from.rows);
  to->set_row_bytes(from.row_bytes);
  to->set_snapshots(from.snapshots);
  to->set_snapshot_bytes(from.snapshot_bytes);
  to->set_partitions_restored(from.partitions_restored);
  to->set_pushes(from.pushes);
  to->set_received_bytes(from.received_bytes);
  to->set_sent_bytes(from.sent_bytes);
  to->set_service_us(from.service_us);
}

ServerCounters FromProto(const v1::ServerCounters& from) {
  ServerCounters to;
  to.pulls = from.pulls();
  to.pulled_rows = from.pulled_rows();
  to.parts_applied = from.parts_applied();
  to.parts_skipped = from.parts_skipped();
  to.parts_stale = from.parts_stale();
  to.parts_wrong_owner = from.parts_wrong_owner();
  to.rows = from.rows();
  to.row_bytes = from.row_bytes();
  to.snapshots = from.snapshots();
  to.snapshot_bytes = from.snapshot_bytes();
  to.partitions_restored = from.partitions_restored();
  to.pushes = from.pushes();
  to.received_bytes = from.received_bytes();
  to.sent_bytes = from.sent_bytes();
  to.service_us = from.service_us();
  return to;
}

void ToProto(const PartitionTraffic& from, v1::PartitionTraffic* to) {
  to->set_partition(from.partition.value());
  to->set_pulls(from.pulls);
  to->set_pushes(from.pushes);
  to->set_moved_rows(from.moved_rows);
  to->set_moved_bytes(from.moved_bytes);
  to->set_service_us(from.service_us);
  to->set_rows(from.rows);
  to->set_row_bytes(from.row_bytes);
}

PartitionTraffic FromProto(const v1::PartitionTraffic& from) {
  return {PartitionId(from.partition()),
          from.pulls(),
          from.pushes(),
          from.moved_rows(),
          from.moved_bytes(),
          from.service_us(),
          from.rows(),
          from.row_bytes()};
}

void ToProto(const RegisterServerRequest& from, v1::RegisterServerRequest* to) {
  to->set_name(from.name);
  to->set_nonce(from.nonce);
  LanesToProto(from.lanes, to);
  to->set_start(from.start.value());
}

absl::StatusOr<RegisterServerRequest> FromProto(const v1::RegisterServerRequest& from) {
  MUSTER_RETURN_IF_ERROR(CheckText("name", from.name(), kNameBytesMax));
  RegisterServerRequest to;
  to.name = from.name();
  to.nonce = from.nonce();
  MUSTER_ASSIGN_OR_RETURN(to.lanes, LanesFromProto(from));
  to.start = StartNumber(from.start());
  return to;
}

void ToProto(const RegisterServerReply& from, v1::RegisterServerReply* to) {
  to->set_master_incarnation(from.master_incarnation.value());
  to->set_id(from.id.value());
  to->set_incarnation(from.incarnation.value());
}

RegisterServerReply FromProto(const v1::RegisterServerReply& from) {
  return {MasterIncarnation(from.master_incarnation()), ServerId(from.id()),
          ServerIncarnation(from.incarnation())};
}

void ToProto(const ServerExchangeRequest& from, v1::ServerExchangeRequest* to) {
  to->set_id(from.id.value());
  to->set_incarnation(from.incarnation.value());
  to->set_sequence(from.sequence);
  for (const OwnedPartition& owned : from.owned) {
    v1::OwnedPartition* item = to->add_owned();
    item->set_partition(owned.partition.value());
    item->set_epoch(owned.epoch.value());
    item->set_accepted(owned.accepted.value());
  }
  for (const SnapshotReport& report : from.snapshots) {
    v1::SnapshotReport* item = to->add_snapshots();
    item->set_partition(report.partition.value());
    item->set_epoch(report.epoch.value());
    ToProto(report.manifest, item->mutable_manifest());
  }
  for (const MissingReport& missing : from.missing) {
    v1::MissingReport* item = to->add_missing();
    item->set_partition(missing.partition.value());
    item->set_epoch(missing.epoch.value());
  }
  to->set_newest_table(from.newest_table.value());
  to->set_forget_version(from.forget_version);
  ToProto(from.counters, to->mutable_counters());
  to->set_snapshot_error(from.snapshot_error);
  to->set_restore_error(from.restore_error);
  to->set_warm_start_error(from.warm_start_error);
  to->set_fatal_error(from.fatal_error);
  for (const PartitionTraffic& traffic : from.traffic) ToProto(traffic, to->add_traffic());
  to->set_leaving(from.leaving);
}

absl::StatusOr<ServerExchangeRequest> FromProto(const v1::ServerExchangeRequest& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("owned", from.owned_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("snapshots", from.snapshots_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("missing", from.missing_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckText("snapshot_error", from.snapshot_error(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckText("restore_error", from.restore_error(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckText("warm_start_error", from.warm_start_error(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckText("fatal_error", from.fatal_error(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(
      CheckCount("traffic", from.traffic_size(), static_cast<int>(kTrafficPerCallMax)));
  ServerExchangeRequest to;
  to.id = ServerId(from.id());
  to.incarnation = ServerIncarnation(from.incarnation());
  to.sequence = from.sequence();
  for (const v1::OwnedPartition& item : from.owned()) {
    to.owned.push_back({PartitionId(item.partition()), OwnerEpoch(item.epoch()),
                        SnapshotNumber::FromValue(item.accepted())});
  }
  for (const v1::SnapshotReport& item : from.snapshots()) {
    SnapshotReport& report = to.snapshots.emplace_back();
    report.partition = PartitionId(item.partition());
    report.epoch = OwnerEpoch(item.epoch());
    MUSTER_ASSIGN_OR_RETURN(report.manifest, FromProto(item.manifest()));
  }
  for (const v1::MissingReport& item : from.missing()) {
    to.missing.push_back({PartitionId(item.partition()), OwnerEpoch(item.epoch())});
  }
  to.newest_table = TableId(from.newest_table());
  to.forget_version = from.forget_version();
  to.counters = FromProto(from.counters());
  to.snapshot_error = from.snapshot_error();
  to.restore_error = from.restore_error();
  to.warm_start_error = from.warm_start_error();
  to.fatal_error = from.fatal_error();
  for (const v1::PartitionTraffic& item : from.traffic()) to.traffic.push_back(FromProto(item));
  to.leaving = from.leaving();
  return to;
}

void ToProto(const ServerExchangeReply& from, v1::ServerExchangeReply* to) {
  to->set_master_incarnation(from.master_incarnation.value());
  to->set_unknown_incarnation(from.unknown_incarnation);
  for (const TableSpec& table : from.tables) ToProto(table, to->add_tables());
  CommandsToProto(from, to);
  if (from.forget.has_value()) ForgetToProto(*from.forget, to->mutable_forget());
  to->set_heartbeat_interval_ms(static_cast<uint64_t>(from.heartbeat_interval.count()));
  to->set_drained(from.drained);
}

absl::StatusOr<ServerExchangeReply> FromProto(const v1::ServerExchangeReply& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("tables", from.tables_size(), kTablesMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("owns", from.owns_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("snapshots", from.snapshots_size(), kPartitionsMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("accepted", from.accepted_size(), kPartitionsMax));
  ServerExchangeReply to;
  to.master_incarnation = MasterIncarnation(from.master_incarnation());
  to.unknown_incarnation = from.unknown_incarnation();
  for (const v1::Table& item : from.tables()) {
    MUSTER_ASSIGN_OR_RETURN(TableSpec table, FromProto(item));
    to.tables.push_back(std::move(table));
  }
  MUSTER_RETURN_IF_ERROR(CommandsFromProto(from, &to));
  if (from.has_forget()) {
    MUSTER_ASSIGN_OR_RETURN(to.forget, ForgetFromProto(from.forget()));
  }
  to.heartbeat_interval = std::chrono::milliseconds(from.heartbeat_interval_ms());
  to.drained = from.drained();
  return to;
}

}  // namespace muster
