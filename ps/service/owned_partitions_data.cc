// The requests of workers: what OwnedPartitions does millions of times a second.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "ps/service/owned_partitions.h"

namespace muster::ps {
namespace {

using wire::PartCode;

uint64_t KeyCount(const std::vector<wire::Group>& groups) {
  uint64_t keys = 0;
  for (const wire::Group& group : groups) keys += group.keys;
  return keys;
}

/// Why the value at `position` of rows of `keys` cannot be sent.
std::string TooLarge(const TableSpec& table, std::span<const uint64_t> keys, float value,
                     size_t position, wire::Encoding encoding) {
  return fmt::format(
      "table '{}': the row of key {} has {} in column {}, but {} ends at {}: set "
      "spec.training.wireEncoding to bfloat16 or float32, or look why the weights grow",
      table.name, keys[position / table.dim], value, position % table.dim, wire::NameOf(encoding),
      wire::LargestFinite(encoding));
}

}  // namespace

wire::PartCode OwnedPartitions::Admit(uint32_t partition, uint64_t owner_epoch) {
  Slot* const slot = Find(partition);
  const bool owner = slot != nullptr &&
                     (slot->epoch == OwnerEpoch(owner_epoch) || MUSTER_PLANTED(kEpochUnchecked));
  if (!owner || (slot->partition == nullptr && !slot->load.has_value())) {
    return PartCode::kWrongOwner;
  }
  return slot->partition == nullptr ? PartCode::kRetry : PartCode::kOk;
}

uint32_t OwnedPartitions::Width(uint32_t table) const {
  return table < widths_.size() ? widths_[table] : 0;
}

void OwnedPartitions::CountPart(Slot* slot, uint64_t Traffic::* kind, uint64_t keys,
                                uint64_t floats) {
  Traffic& traffic = slot->traffic;
  ++(traffic.*kind);
  traffic.rows += keys;
  traffic.bytes += keys * sizeof(uint64_t) + floats * sizeof(float);
  traffic.changed = true;
  served_.push_back({&traffic, keys});
}

void OwnedPartitions::CountServed(const ServedRequest& request) {
  counters_.received_bytes += request.received_bytes;
  counters_.sent_bytes += request.sent_bytes;
  service_ += request.time;
  uint64_t rows = 0;
  for (const Served& served : served_) rows += served.rows;
  if (rows == 0) return;
  const double per_row = static_cast<double>(request.time.count()) / static_cast<double>(rows);
  for (const Served& served : served_) {
    served.traffic->service_ns += per_row * static_cast<double>(served.rows);
  }
}

void OwnedPartitions::Pull(const PullRequest& request, PullReply* reply) {
  ++counters_.pulls;
  served_.clear();
  // First what each part may have, so that the values are sized once.
  uint64_t floats = 0;
  reply->parts.reserve(request.parts.size());
  for (const wire::PullPart& part : request.parts) {
    PartCode code = Admit(part.partition, part.owner_epoch);
    uint64_t part_floats = 0;
    for (const wire::Group& group : part.groups) {
      const uint32_t width = Width(group.table);
      if (width == 0 && code == PartCode::kOk) code = PartCode::kRetry;
      part_floats += uint64_t{group.keys} * width;
    }
    if (code == PartCode::kOk &&
        (floats + part_floats) * sizeof(float) > options_.reply_bytes_max) {
      code = PartCode::kBadRequest;
      reply->text = fmt::format(
          "partition {}: the rows of one pull are more than {} bytes; pull "
          "fewer keys at once",
          part.partition, options_.reply_bytes_max);
    }
    if (code == PartCode::kOk) floats += part_floats;
    reply->parts.push_back({.partition = part.partition, .code = code});
  }
  if (!reply->values.Resize(floats * sizeof(float))) {
    for (wire::PartReply& part : reply->parts) part.code = PartCode::kRetry;
    return;
  }
  std::span<float> rest = reply->values.floats();
  std::span<const uint64_t> keys = request.keys;
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const wire::PullPart& part = request.parts[i];
    const uint64_t count = KeyCount(part.groups);
    if (reply->parts[i].code == PartCode::kOk) {
      reply->parts[i] =
          PullPart(Find(part.partition), part, keys, request.encoding, &rest, &reply->text);
    }
    keys = keys.subspan(count);
  }
  const size_t used = floats - rest.size();
  MUSTER_CHECK(reply->values.Resize(used * sizeof(float)));
}

wire::PartReply OwnedPartitions::PullPart(Slot* slot, const wire::PullPart& part,
                                          std::span<const uint64_t> keys, wire::Encoding encoding,
                                          std::span<float>* values, std::string* text) {
  std::span<float> rest = *values;
  uint64_t pulled = 0;
  for (const wire::Group& group : part.groups) {
    const size_t floats = size_t{group.keys} * Width(group.table);
    const absl::Status status =
        slot->partition->Pull(TableId(group.table), keys.first(group.keys), rest.first(floats));
    if (!status.ok()) {
      *text = fmt::format("partition {}: {}", part.partition, Message(status));
      const bool unknown = status.code() == absl::StatusCode::kNotFound;
      return {.partition = part.partition,
              .code = unknown ? PartCode::kRetry : PartCode::kBadRequest};
    }
    if (const size_t bad = wire::FirstUnencodable(rest.first(floats), encoding); bad != floats) {
      *text = TooLarge(tables_.at(TableId(group.table)).spec, keys, rest[bad], bad, encoding);
      return {.partition = part.partition, .code = PartCode::kBadRequest};
    }
    keys = keys.subspan(group.keys);
    rest = rest.subspan(floats);
    counters_.pulled_rows += group.keys;
    pulled += group.keys;
  }
  CountPart(slot, &Traffic::pulls, pulled, values->size() - rest.size());
  *values = rest;
  return {.partition = part.partition, .code = PartCode::kOk};
}

void OwnedPartitions::Push(const PushRequest& request, PushReply* reply) {
  ++counters_.pushes;
  served_.clear();
  // Where a part's rows begin follows from the widths of all tables before it, so a push is only
  // served when all of them are known and everything adds up.
  uint64_t floats = 0;
  bool all_known = true;
  for (const wire::PushPart& part : request.parts) {
    for (const wire::Group& group : part.groups) {
      const uint32_t width = Width(group.table);
      if (width == 0) all_known = false;
      floats += uint64_t{group.keys} * width;
    }
  }
  const bool fits = floats == request.values.size();
  if (all_known && !fits) {
    reply->text = fmt::format(
        "the push has {} values, its keys and the widths of its tables make "
        "{}: the worker has another idea of a table's width",
        request.values.size(), floats);
  }
  std::span<const uint64_t> keys = request.keys;
  std::span<const float> values = request.values;
  reply->parts.reserve(request.parts.size());
  for (const wire::PushPart& part : request.parts) {
    const PartCode code = Admit(part.partition, part.owner_epoch);
    if (code == PartCode::kWrongOwner) ++counters_.parts_wrong_owner;
    if (code != PartCode::kOk) {
      reply->parts.push_back({.partition = part.partition, .code = code});
    } else if (!all_known) {
      reply->parts.push_back({.partition = part.partition, .code = PartCode::kRetry});
    } else if (!fits) {
      reply->parts.push_back({.partition = part.partition, .code = PartCode::kBadRequest});
    } else {
      reply->parts.push_back(PushPart(Find(part.partition), part, keys, values, &reply->text));
    }
    if (!all_known || !fits) continue;
    for (const wire::Group& group : part.groups) {
      keys = keys.subspan(group.keys);
      values = values.subspan(size_t{group.keys} * Width(group.table));
    }
  }
}

wire::PartReply OwnedPartitions::PushPart(Slot* slot, const wire::PushPart& part,
                                          std::span<const uint64_t> keys,
                                          std::span<const float> values, std::string* text) {
  part_.shard = {DatasetId(part.dataset), EpochIndex(part.epoch), ShardIndex(part.shard_index)};
  part_.minibatch = MinibatchIndex(part.minibatch);
  part_.token = LeaseToken::FromValue(part.token);
  part_.step = part.step;
  part_.groups.clear();
  uint64_t pushed_rows = 0, pushed_floats = 0;
  for (const wire::Group& group : part.groups) {
    const size_t floats = size_t{group.keys} * Width(group.table);
    pushed_rows += group.keys;
    pushed_floats += floats;
    part_.groups.push_back({TableId(group.table), keys.first(group.keys), values.first(floats)});
    keys = keys.subspan(group.keys);
    values = values.subspan(floats);
  }
  if (MUSTER_PLANTED(kPartNotAtom) && !part_.groups.empty()) {
    const std::vector<PartGroup> groups = part_.groups;
    for (size_t i = 0; i + 1 < groups.size(); ++i) {
      part_.groups = {groups[i]};
      slot->partition->Apply(part_);
    }
    part_.groups = {groups.back()};
  }
  const ApplyResult result = slot->partition->Apply(part_);
  wire::PartReply reply{.partition = part.partition};
  switch (result.code) {
    case ApplyCode::kApplied:
      ++counters_.parts_applied;
      break;
    case ApplyCode::kSkipped:
      if (!part_.groups.empty()) ++counters_.parts_skipped;
      reply.skipped = true;
      break;
    case ApplyCode::kMissing:
      reply.code = PartCode::kMissing;
      break;
    case ApplyCode::kStaleLease:
      ++counters_.parts_stale;
      reply.code = PartCode::kStaleLease;
      break;
    case ApplyCode::kUnknownTable:
      reply.code = PartCode::kRetry;
      break;
    case ApplyCode::kBadRequest:
      *text = fmt::format("partition {}: {}", part.partition, result.text);
      reply.code = PartCode::kBadRequest;
      break;
  }
  if (reply.code == PartCode::kOk && !part_.groups.empty()) {
    CountPart(slot, &Traffic::pushes, pushed_rows, pushed_floats);
  }
  return reply;
}

}  // namespace muster::ps
