#include "master/journal/record_codec.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "proto/journal.pb.h"
#include "sharding/codec/control_codec.h"

namespace muster {
namespace {

void AppendBigEndian(uint64_t value, int bytes, std::string* key) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    key->push_back(static_cast<char>((value >> shift) & 0xff));
  }
}
std::string Key(char kind, uint64_t id, int bytes) {
  std::string key(1, kind);
  AppendBigEndian(id, bytes, &key);
  return key;
}
std::string EpochKey(DatasetId dataset, EpochIndex epoch, char kind) {
  std::string key = Key(kind, dataset.value(), 4);
  AppendBigEndian(epoch.value(), 4, &key);
  return key;
}
std::string ShardKey(const ShardId& shard, char kind) {
  std::string key = EpochKey(shard.dataset, shard.epoch, kind);
  AppendBigEndian(shard.index.value(), 8, &key);
  return key;
}
constexpr char kFailureKind = 'f', kRangeKind = 'r';

void ToProto(const ShardMetrics& from, v1::JournalMetrics* to) {
  to->set_records(from.records);
  to->set_rejected_records(from.rejected_records);
  for (const std::string& sample : from.reject_samples) to->add_reject_samples(sample);
  for (const auto& [name, mean] : from.means) {
    v1::JournalMean* added = to->add_means();
    added->set_name(name);
    added->set_sum(mean.sum);
    added->set_weight(mean.weight);
  }
  for (const auto& [name, histogram] : from.aucs) {
    v1::JournalAuc* added = to->add_aucs();
    added->set_name(name);
    for (const AucHistogram::Bin& bin : histogram.bins) {
      added->add_bins(bin.bin);
      added->add_positives(bin.positives);
      added->add_negatives(bin.negatives);
    }
  }
}

absl::StatusOr<ShardMetrics> MetricsFromProto(const v1::JournalMetrics& from) {
  ShardMetrics to;
  to.records = from.records();
  to.rejected_records = from.rejected_records();
  to.reject_samples.assign(from.reject_samples().begin(), from.reject_samples().end());
  for (const v1::JournalMean& mean : from.means()) {
    to.means[mean.name()] = {mean.sum(), mean.weight()};
  }
  for (const v1::JournalAuc& auc : from.aucs()) {
    std::vector<AucHistogram::Bin>& bins = to.aucs[auc.name()].bins;
    if (auc.positives_size() != auc.bins_size() || auc.negatives_size() != auc.bins_size()) {
      return absl::DataLossError("a histogram's lists differ in length");
    }
    for (int i = 0; i < auc.bins_size(); ++i) {
      if (auc.bins(i) >= AucHistogram::kBins) return absl::DataLossError("a bin out of range");
      if (!bins.empty() && auc.bins(i) <= bins.back().bin) {
        return absl::DataLossError("a histogram's bins do not ascend");
      }
      bins.push_back({auc.bins(i), auc.positives(i), auc.negatives(i)});
    }
  }
  return to;
}

void ToProto(const MetaRecord& from, v1::JournalMeta* to) {
  to->set_incarnation(from.incarnation.value());
  to->set_done_seq(from.done_seq.value());
  to->set_commit_seq(from.commit_seq.value());
  to->set_map_version(from.map_version.value());
  to->set_restore_epoch(from.restore_epoch.value());
  to->set_newest_server_incarnation(from.newest_server_incarnation.value());
  to->set_state(static_cast<uint32_t>(from.state));
  to->set_reason(from.reason);
  to->set_run_id(from.run_id);
  to->set_snapshot_directory(from.snapshot_directory);
  v1::JournalTotals* totals = to->mutable_totals();
  totals->set_redelivered_minibatches(from.totals.redelivered_minibatches);
  totals->set_replayed_shards(from.totals.replayed_shards);
  totals->set_reverified_runs(from.totals.reverified_runs);
  totals->set_reasserted_leases(from.totals.reasserted_leases);
  totals->set_expired_leases(from.totals.expired_leases);
  totals->set_refused_dones(from.totals.refused_dones);
  totals->set_snapshots_accepted(from.totals.snapshots_accepted);
  totals->set_master_restarts(from.totals.master_restarts);
}

MetaRecord MetaFromProto(const v1::JournalMeta& from) {
  MetaRecord to;
  to.incarnation = MasterIncarnation(from.incarnation());
  to.done_seq = DoneSeq(from.done_seq());
  to.commit_seq = DoneSeq(from.commit_seq());
  to.map_version = MapVersion(from.map_version());
  to.restore_epoch = RestoreEpoch(from.restore_epoch());
  to.newest_server_incarnation = ServerIncarnation(from.newest_server_incarnation());
  to.state = static_cast<JobState>(from.state());
  to.reason = from.reason();
  to.run_id = from.run_id();
  to.snapshot_directory = from.snapshot_directory();
  const v1::JournalTotals& totals = from.totals();
  to.totals = {totals.redelivered_minibatches(), totals.replayed_shards(), totals.reverified_runs(),
               totals.reasserted_leases(),       totals.expired_leases(),  totals.refused_dones(),
               totals.snapshots_accepted(),      totals.master_restarts()};
  return to;
}

void ToProto(const NodeRecord& from, v1::JournalNode* to) {
  to->set_name(from.name);
  to->set_role(from.role);
  to->set_state(std::string(ToString(from.state)));
  to->set_pid(from.pid);
  to->set_incarnation(from.incarnation);
  to->set_start(from.start.value());
  to->set_told_start(from.told_start.value());
  to->set_last_exit(from.last_exit);
  to->set_records_committed(from.records_committed);
  to->set_nonce(from.nonce);
  for (uint64_t nonce : from.superseded_nonces) to->add_superseded_nonces(nonce);
  for (const auto& lane : from.lanes) {
    v1::JournalLane* added = to->add_lanes();
    for (const std::string& address : lane) added->add_addresses(address);
  }
  to->set_skipped_before(from.skipped_before);
  to->set_stale_before(from.stale_before);
  to->set_skipped_now(from.skipped_now);
  to->set_stale_now(from.stale_now);
}

NodeRecord NodeFromProto(const v1::JournalNode& from) {
  NodeRecord to;
  to.name = from.name();
  to.role = from.role();
  to.state = ParseNodeState(from.state()).value_or(NodeState::kStarting);
  to.pid = from.pid();
  to.incarnation = from.incarnation();
  to.start = StartNumber(from.start());
  to.told_start = StartNumber(from.restarts() > 0 ? from.restarts() + 1u : from.told_start());
  to.last_exit = from.last_exit();
  to.records_committed = from.records_committed();
  to.nonce = from.nonce();
  to.superseded_nonces.assign(from.superseded_nonces().begin(), from.superseded_nonces().end());
  for (const v1::JournalLane& lane : from.lanes()) {
    to.lanes.emplace_back(lane.addresses().begin(), lane.addresses().end());
  }
  to.skipped_before = from.skipped_before();
  to.stale_before = from.stale_before();
  to.skipped_now = from.skipped_now();
  to.stale_now = from.stale_now();
  return to;
}

void ToProto(const StreamPositionRecord& from, v1::JournalStreamPosition* to) {
  to->set_dataset(from.dataset.value());
  to->set_partition(from.position.partition.value());
  to->set_begin(from.position.begin);
  to->set_cut(from.position.cut);
  if (from.position.end.has_value()) to->set_end(*from.position.end);
}

void ToProto(const StreamRangeRecord& from, v1::JournalStreamRange* to) {
  muster::ToProto(from.shard, to->mutable_shard());
  to->set_partition(from.range.partition.value());
  to->set_begin(from.range.begin);
  to->set_end(from.range.end);
  to->set_first_step(from.range.first_step);
  to->set_seen_us(static_cast<uint64_t>(from.range.seen.count()));
}

template <typename Message>
StoreChange Put(std::string key, const Message& message) {
  return {std::move(key), message.SerializeAsString(), ""};
}

/// Where a record lies.
struct KeyOf {
  std::string operator()(const MetaRecord&) const { return "m"; }
  std::string operator()(const DoneRecord& record) const {
    return Key('d', record.done.seq.value(), 8);
  }
  std::string operator()(const EpochRecord& record) const {
    return EpochKey(record.dataset, record.epoch, 'e');
  }
  std::string operator()(const FailureRecord& record) const {
    return ShardKey(record.shard, kFailureKind);
  }
  std::string operator()(const PartitionRecord& record) const {
    return Key('p', record.partition.value(), 4);
  }
  std::string operator()(const TableSpec& table) const { return Key('t', table.id.value(), 4); }
  std::string operator()(const NodeRecord& record) const { return "n" + record.name; }
  std::string operator()(const EventRecord& record) const { return Key('v', record.sequence, 8); }
  std::string operator()(const StreamRecord& record) const {
    return Key('s', record.dataset.value(), 4);
  }
  std::string operator()(const StreamPositionRecord& record) const {
    std::string key = Key('o', record.dataset.value(), 4);
    AppendBigEndian(record.position.partition.value(), 4, &key);
    return key;
  }
  std::string operator()(const StreamRangeRecord& record) const {
    return ShardKey(record.shard, kRangeKind);
  }
  /// No record.
  std::string operator()(const EraseStreamRange&) const { return ""; }
  std::string operator()(const EraseDone&) const { return ""; }
  std::string operator()(const EraseFailure&) const { return ""; }
  std::string operator()(const EraseNode&) const { return ""; }
  std::string operator()(const EraseEvents&) const { return ""; }
};

struct Encoder {
  StoreChange operator()(const MetaRecord& record) const {
    v1::JournalMeta message;
    ToProto(record, &message);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const DoneRecord& record) const {
    v1::JournalDone message;
    message.set_seq(record.done.seq.value());
    muster::ToProto(record.done.shard, message.mutable_shard());
    message.set_token(record.done.token.value());
    message.set_worker(record.worker);
    ToProto(record.metrics, message.mutable_metrics());
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const EraseDone& range) const {
    return {Key('d', range.first.value(), 8), std::nullopt, Key('d', range.last.value() + 1, 8)};
  }
  StoreChange operator()(const EpochRecord& record) const {
    v1::JournalEpoch message;
    message.set_dataset(record.dataset.value());
    message.set_epoch(record.epoch.value());
    for (const auto& [begin, end] : record.committed.intervals()) {
      v1::Interval* interval = message.add_committed();
      interval->set_begin(begin);
      interval->set_end(end);
    }
    message.set_records_committed(record.records_committed);
    ToProto(record.metrics, message.mutable_metrics());
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const FailureRecord& record) const {
    v1::JournalFailure message;
    muster::ToProto(record.shard, message.mutable_shard());
    message.set_failures(record.failures);
    message.set_node_failures(record.node_failures);
    for (const std::string& reason : record.reasons) message.add_reasons(reason);
    message.set_failed(record.failed);
    message.set_charged(record.charged.value());
    message.set_lost(record.lost);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const EraseFailure& erase) const {
    return {ShardKey(erase.shard, kFailureKind), std::nullopt, ""};
  }
  StoreChange operator()(const PartitionRecord& record) const {
    v1::JournalPartition message;
    message.set_partition(record.partition.value());
    v1::PartitionEntry* entry = message.mutable_entry();
    entry->set_owner(record.entry.owner.value());
    entry->set_owner_incarnation(record.entry.owner_incarnation.value());
    entry->set_epoch(record.entry.epoch.value());
    entry->set_since(record.entry.since.value());
    entry->set_copy(record.entry.copy.value());
    entry->set_restored(record.entry.restored);
    entry->set_restored_at(record.entry.restored_at.value());
    muster::ToProto(record.manifest, message.mutable_manifest());
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const TableSpec& table) const {
    v1::Table message;
    muster::ToProto(table, &message);
    return Put(KeyOf{}(table), message);
  }
  StoreChange operator()(const NodeRecord& record) const {
    v1::JournalNode message;
    ToProto(record, &message);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const EraseNode& erase) const {
    return {"n" + erase.name, std::nullopt, ""};
  }
  StoreChange operator()(const EventRecord& record) const {
    v1::JournalEvent message;
    message.set_sequence(record.sequence);
    message.set_wall_us(static_cast<uint64_t>(record.wall.count()));
    message.set_kind(record.kind);
    message.set_node(record.node);
    message.set_text(record.text);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const StreamRecord& record) const {
    v1::JournalStream message;
    message.set_dataset(record.dataset.value());
    message.set_next_shard(record.next_shard.value());
    message.set_next_step(record.next_step);
    message.set_cluster(record.cluster);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const StreamPositionRecord& record) const {
    v1::JournalStreamPosition message;
    ToProto(record, &message);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const StreamRangeRecord& record) const {
    v1::JournalStreamRange message;
    ToProto(record, &message);
    return Put(KeyOf{}(record), message);
  }
  StoreChange operator()(const EraseStreamRange& erase) const {
    return {ShardKey(erase.shard, kRangeKind), std::nullopt, ""};
  }
  StoreChange operator()(const EraseEvents& erase) const {
    return {Key('v', 0, 8), std::nullopt, Key('v', erase.last + 1, 8)};
  }
};

absl::StatusOr<Mutation> DecodeDone(const v1::JournalDone& from) {
  DoneRecord to;
  to.done = {DoneSeq(from.seq()), FromProto(from.shard()), LeaseToken::FromValue(from.token())};
  to.worker = from.worker();
  MUSTER_ASSIGN_OR_RETURN(to.metrics, MetricsFromProto(from.metrics()));
  return to;
}

absl::StatusOr<Mutation> DecodeEpoch(const v1::JournalEpoch& from) {
  EpochRecord to;
  to.dataset = DatasetId(from.dataset());
  to.epoch = EpochIndex(from.epoch());
  for (const v1::Interval& interval : from.committed()) {
    if (interval.begin() >= interval.end()) return absl::DataLossError("an empty interval");
    to.committed.Add(interval.begin(), interval.end());
  }
  to.records_committed = from.records_committed();
  MUSTER_ASSIGN_OR_RETURN(to.metrics, MetricsFromProto(from.metrics()));
  return to;
}

absl::StatusOr<Mutation> DecodePartition(const v1::JournalPartition& from) {
  PartitionRecord to;
  to.partition = PartitionId(from.partition());
  const v1::PartitionEntry& entry = from.entry();
  to.entry = {ServerId(entry.owner()),          ServerIncarnation(entry.owner_incarnation()),
              OwnerEpoch(entry.epoch()),        OwnerEpoch(entry.since()),
              OwnerEpoch(entry.copy()),         entry.restored(),
              RestoreEpoch(entry.restored_at())};
  MUSTER_ASSIGN_OR_RETURN(to.manifest, FromProto(from.manifest()));
  return to;
}

Mutation DecodeFailure(const v1::JournalFailure& from) {
  FailureRecord to;
  to.shard = FromProto(from.shard());
  to.failures = from.failures();
  to.node_failures = from.node_failures();
  to.reasons.assign(from.reasons().begin(), from.reasons().end());
  to.failed = from.failed();
  to.lost = from.lost();
  to.charged = LeaseToken::FromValue(from.charged());
  return to;
}

Mutation DecodeEvent(const v1::JournalEvent& from) {
  return EventRecord{from.sequence(), WallTime(from.wall_us()), from.kind(), from.node(),
                     from.text()};
}

Mutation DecodeStream(const v1::JournalStream& from) {
  return StreamRecord{DatasetId(from.dataset()), ShardIndex(from.next_shard()), from.next_step(),
                      from.cluster()};
}

absl::StatusOr<Mutation> DecodeStreamPosition(const v1::JournalStreamPosition& from) {
  StreamPosition to{TopicPartition(from.partition()), from.begin(), from.cut(), std::nullopt};
  if (from.has_end()) to.end = from.end();
  if (to.begin > to.cut) return absl::DataLossError("a stream was cut before its begin");
  return StreamPositionRecord{DatasetId(from.dataset()), to};
}

absl::StatusOr<Mutation> DecodeStreamRange(const v1::JournalStreamRange& from) {
  if (from.begin() >= from.end()) return absl::DataLossError("an empty range of offsets");
  return StreamRangeRecord{FromProto(from.shard()),
                           {TopicPartition(from.partition()), from.begin(), from.end(),
                            from.first_step(), WallTime(from.seen_us())}};
}

template <typename Message, typename Make>
absl::StatusOr<Mutation> ParseAs(std::string_view value, Make make) {
  Message message;
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return absl::DataLossError("the value cannot be parsed");
  }
  return make(message);
}

absl::StatusOr<Mutation> DecodeValue(char kind, std::string_view value) {
  switch (kind) {
    case 'm':
      return ParseAs<v1::JournalMeta>(value, [](const auto& m) { return MetaFromProto(m); });
    case 'd':
      return ParseAs<v1::JournalDone>(value, [](const auto& m) { return DecodeDone(m); });
    case 'e':
      return ParseAs<v1::JournalEpoch>(value, [](const auto& m) { return DecodeEpoch(m); });
    case 'f':
      return ParseAs<v1::JournalFailure>(value, [](const auto& m) { return DecodeFailure(m); });
    case 'p':
      return ParseAs<v1::JournalPartition>(value, [](const auto& m) { return DecodePartition(m); });
    case 't':
      return ParseAs<v1::Table>(value, [](const auto& m) -> absl::StatusOr<Mutation> {
        MUSTER_ASSIGN_OR_RETURN(TableSpec table, FromProto(m));
        return table;
      });
    case 'n':
      return ParseAs<v1::JournalNode>(value, [](const auto& m) { return NodeFromProto(m); });
    case 'v':
      return ParseAs<v1::JournalEvent>(value, [](const auto& m) { return DecodeEvent(m); });
    case 's':
      return ParseAs<v1::JournalStream>(value, [](const auto& m) { return DecodeStream(m); });
    case 'o':
      return ParseAs<v1::JournalStreamPosition>(
          value, [](const auto& m) { return DecodeStreamPosition(m); });
    case kRangeKind:
      return ParseAs<v1::JournalStreamRange>(value,
                                             [](const auto& m) { return DecodeStreamRange(m); });
    default:
      return absl::DataLossError("an unknown kind of record");
  }
}

}  // namespace

StoreChange Encode(const Mutation& mutation) {
  return std::visit(Encoder{}, mutation);
}

absl::StatusOr<Mutation> Decode(std::string_view key, std::string_view value) {
  absl::StatusOr<Mutation> mutation = DecodeValue(key.empty() ? '\0' : key[0], value);
  if (mutation.ok() && std::visit(KeyOf{}, *mutation) == key) return mutation;
  if (mutation.ok()) mutation = absl::DataLossError("the value is that of another key");
  std::string shown;
  for (unsigned char c : key.substr(0, 40)) shown += fmt::format("{:02x}", c);
  return Annotate(mutation.status(), fmt::format("the journal's record {}", shown));
}

std::string EncodeHeader(const JournalHeader& header) {
  v1::JournalHeader message;
  message.set_format(kJournalFormat);
  message.set_job(header.job);
  for (const auto& [name, value] : header.fixed_fields) {
    v1::FixedField* field = message.add_fixed_fields();
    field->set_name(name);
    field->set_value(value);
  }
  for (const auto& [name, value] : header.sources) {
    v1::FixedField* source = message.add_sources();
    source->set_name(name);
    source->set_value(value);
  }
  message.set_job_id(header.job_id);
  return message.SerializeAsString();
}

absl::StatusOr<JournalHeader> DecodeHeader(std::string_view value) {
  v1::JournalHeader message;
  if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return absl::DataLossError("the journal's header cannot be parsed");
  }
  if (message.format() != kJournalFormat) {
    return absl::FailedPreconditionError(
        fmt::format("the journal has format {}, this program reads {}: use the program that wrote "
                    "it, or another spec.stateDirectory",
                    message.format(), kJournalFormat));
  }
  JournalHeader header{message.job(), {}, {}, message.job_id()};
  for (const v1::FixedField& field : message.fixed_fields()) {
    header.fixed_fields.emplace_back(field.name(), field.value());
  }
  for (const v1::FixedField& source : message.sources()) {
    header.sources.emplace_back(source.name(), source.value());
  }
  return header;
}

}  // namespace muster
