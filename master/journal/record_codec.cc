#include "master/journal/record_codec.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "base/status.h"
#include "base/version.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"

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
constexpr char kEpochKind = 'e', kWholeKind = 'w', kFailureKind = 'f', kRangeKind = 'r',
               kKeptKind = 'k';

/// The key of a record.
struct KeyOf {
  std::string operator()(const MetaRecord&) const { return "m"; }
  std::string operator()(const DoneRecord& record) const {
    return Key('d', record.done.seq.value(), 8);
  }
  std::string operator()(const EpochRecord& record) const {
    return EpochKey(record.dataset, record.epoch, kEpochKind);
  }
  std::string operator()(const WholeEpochsRecord& record) const {
    return Key(kWholeKind, record.dataset.value(), 4);
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
  std::string operator()(const StreamShardRecord& record) const {
    return ShardKey(record.shard, kRangeKind);
  }
  std::string operator()(const KeptRecord& record) const {
    std::string key = Key(kKeptKind, record.epoch.value(), 4);
    AppendBigEndian(record.partition.value(), 4, &key);
    return key;
  }
  std::string operator()(const GroupModelRecord&) const { return "gm"; }
  std::string operator()(const GroupRecord&) const { return "gg"; }
  std::string operator()(const StepRecord&) const { return "gs"; }
  std::string operator()(const CheckpointRecord&) const { return "gc"; }
  /// No record.
  std::string operator()(const EraseEpoch&) const { return ""; }
  std::string operator()(const EraseKept&) const { return ""; }
  std::string operator()(const EraseStreamShard&) const { return ""; }
  std::string operator()(const EraseDone&) const { return ""; }
  std::string operator()(const EraseFailure&) const { return ""; }
  std::string operator()(const EraseNode&) const { return ""; }
  std::string operator()(const EraseEvents&) const { return ""; }
};

/// Values that also come from peers are checked on disk by the same rules.
template <typename Record>
constexpr fields::Side kSideOf =
    std::is_same_v<Record, TableSpec> || std::is_same_v<Record, PartitionRecord> ||
            std::is_same_v<Record, KeptRecord> || std::is_same_v<Record, GroupModelRecord> ||
            std::is_same_v<Record, CheckpointRecord>
        ? fields::Side::kPeer
        : fields::Side::kOwnDisk;

struct Encoder {
  template <fields::Listed Record>
  StoreChange operator()(const Record& record) const {
    return {KeyOf{}(record), fields::Encode(record, kSideOf<Record>), ""};
  }
  StoreChange operator()(const EraseDone& range) const {
    return {Key('d', range.first.value(), 8), std::nullopt, Key('d', range.last.value() + 1, 8)};
  }
  StoreChange operator()(const EraseFailure& erase) const {
    return {ShardKey(erase.shard, kFailureKind), std::nullopt, ""};
  }
  StoreChange operator()(const EraseEpoch& erase) const {
    return {EpochKey(erase.dataset, erase.epoch, kEpochKind), std::nullopt, ""};
  }
  StoreChange operator()(const EraseKept& erase) const {
    return {Key(kKeptKind, erase.epoch.value(), 4), std::nullopt,
            Key(kKeptKind, uint64_t{erase.epoch.value()} + 1, 4)};
  }
  StoreChange operator()(const EraseNode& erase) const {
    return {"n" + erase.name, std::nullopt, ""};
  }
  StoreChange operator()(const EraseStreamShard& erase) const {
    return {ShardKey(erase.shard, kRangeKind), std::nullopt, ""};
  }
  StoreChange operator()(const EraseEvents& erase) const {
    return {Key('v', 0, 8), std::nullopt, Key('v', erase.last + 1, 8)};
  }
};

template <typename Record>
absl::StatusOr<Mutation> As(std::string_view value) {
  absl::StatusOr<Record> record = fields::Decode<Record>(value, kSideOf<Record>);
  if (!record.ok()) return absl::DataLossError(record.status().message());
  return *std::move(record);
}

absl::StatusOr<Mutation> AsNode(std::string_view value) {
  MUSTER_ASSIGN_OR_RETURN(Mutation node, As<NodeRecord>(value));
  const auto old = fields::Decode<OldNodeRecord>(value, fields::Side::kOwnDisk);
  if (old.ok() && old->restarts > 0) {
    std::get<NodeRecord>(node).told_start = StartNumber(old->restarts + 1u);
  }
  return node;
}

absl::StatusOr<Mutation> DecodeOfGroup(std::string_view key, std::string_view value) {
  if (key.starts_with("gm")) return As<GroupModelRecord>(value);
  if (key.starts_with("gg")) return As<GroupRecord>(value);
  if (key.starts_with("gs")) return As<StepRecord>(value);
  if (key.starts_with("gc")) return As<CheckpointRecord>(value);
  return absl::DataLossError("an unknown record of a group");
}

absl::StatusOr<Mutation> DecodeValue(std::string_view key, std::string_view value) {
  switch (key.empty() ? '\0' : key[0]) {
    case 'g':
      return DecodeOfGroup(key, value);
    case 'm':
      return As<MetaRecord>(value);
    case 'd':
      return As<DoneRecord>(value);
    case kEpochKind:
      return As<EpochRecord>(value);
    case kWholeKind:
      return As<WholeEpochsRecord>(value);
    case kFailureKind:
      return As<FailureRecord>(value);
    case 'p':
      return As<PartitionRecord>(value);
    case 't':
      return As<TableSpec>(value);
    case 'n':
      return AsNode(value);
    case 'v':
      return As<EventRecord>(value);
    case 's':
      return As<StreamRecord>(value);
    case 'o':
      return As<StreamPositionRecord>(value);
    case kKeptKind:
      return As<KeptRecord>(value);
    case kRangeKind:
      return As<StreamShardRecord>(value);
    default:
      return absl::DataLossError(
          "an unknown kind of record: it is damaged, or a newer version of muster wrote it");
  }
}

/// JournalHeader of proto/journal.proto.
struct StoredHeader {
  uint32_t format = kJournalFormat;
  JournalHeader header;
  static void Fields(auto& f, auto& s) {
    f(1, "format", s.format);
    f(2, "job", s.header.job);
    f(3, "fixed_fields", s.header.fixed_fields);
    f(4, "sources", s.header.sources);
    f(5, "job_id", s.header.job_id);
  }
};

}  // namespace

StoreChange Encode(const Mutation& mutation) {
  return std::visit(Encoder{}, mutation);
}

absl::StatusOr<Mutation> Decode(std::string_view key, std::string_view value) {
  absl::StatusOr<Mutation> mutation = DecodeValue(key, value);
  if (mutation.ok() && std::visit(KeyOf{}, *mutation) == key) return mutation;
  if (mutation.ok()) mutation = absl::DataLossError("the value belongs to another key");
  std::string shown;
  for (unsigned char c : key.substr(0, 40)) shown += fmt::format("{:02x}", c);
  return Annotate(mutation.status(), fmt::format("the journal's record {}", shown));
}

std::string EncodeHeader(const JournalHeader& header) {
  return fields::Encode(StoredHeader{.header = header}, fields::Side::kOwnDisk);
}

absl::StatusOr<JournalHeader> DecodeHeader(std::string_view value) {
  absl::StatusOr<StoredHeader> stored = fields::Decode<StoredHeader>(value, fields::Side::kOwnDisk);
  if (!stored.ok()) return absl::DataLossError("the journal's header cannot be parsed");
  if (stored->format != kJournalFormat) {
    return absl::FailedPreconditionError(fmt::format(
        "the journal has format {}, but muster {} reads format {}. Use the version of "
        "muster that wrote it, or begin again in another spec.stateDirectory (an export "
        "by that version keeps the weights)",
        stored->format, kVersion, kJournalFormat));
  }
  return std::move(stored->header);
}

}  // namespace muster
