// The requests of workers: what OwnedPartitions does millions of times a second.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "ps/core/owned_partitions.h"

namespace muster::ps {
namespace {

using wire::PartCode;

uint64_t KeyCount(const std::vector<wire::Group>& groups) {
  uint64_t keys = 0;
  for (const wire::Group& group : groups) keys += group.keys;
  return keys;
}

/// What a part costs besides its rows, in bytes that could be moved instead.
constexpr uint64_t kPartWork = 1024;

/// Of a pull that the engine sees together. Each batch of groups begins and ends with rows that
/// nothing else is done for meanwhile.
constexpr size_t kGroupsAtOnce = 128;

/// Why the value at `position` of rows of `keys` cannot be sent.
std::string TooLarge(const TableSpec& table, std::span<const uint64_t> keys, float value,
                     size_t position, wire::Encoding encoding) {
  return fmt::format(
      "table '{}': the row of key {} has {} in column {}, but {} ends at {}: set "
      "spec.training.wireEncoding to bfloat16 or float32, or look why the weights grow",
      table.name, keys[position / table.dim], value, position % table.dim, wire::NameOf(encoding),
      wire::LargestFinite(encoding));
}

/// False: a row of [begin, end) is too large for the encoding, and the reply says so.
bool FitEncoding(const PullRequest& request, const PullGroup& group, size_t begin, size_t end,
                 const wire::PullPart& part, PullReply* reply) {
  if (begin == end || request.encoding == wire::Encoding::kFloat32) return true;
  const size_t dim = group.table->dim();
  const std::span<const float> rows = group.values.subspan(begin * dim, (end - begin) * dim);
  const size_t bad = wire::FirstUnencodable(rows, request.encoding);
  if (bad == rows.size()) return true;
  reply->text = fmt::format(
      "partition {}: {}", part.partition,
      TooLarge(group.table->spec(), group.keys.subspan(begin), rows[bad], bad, request.encoding));
  return false;
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
                                uint64_t floats, RequestProgress* progress) {
  Traffic& traffic = slot->traffic;
  ++(traffic.*kind);
  traffic.rows += keys;
  traffic.bytes += keys * sizeof(uint64_t) + floats * sizeof(float);
  traffic.changed = true;
  progress->served.push_back({&traffic, keys});
}

void OwnedPartitions::CountServed(const ServedRequest& request, const RequestProgress& progress) {
  counters_.received_bytes += request.received_bytes;
  counters_.sent_bytes += request.sent_bytes;
  service_ += request.time;
  uint64_t rows = 0;
  for (const auto& served : progress.served) rows += served.rows;
  if (rows == 0) return;
  const double per_row = static_cast<double>(request.time.count()) / static_cast<double>(rows);
  for (const auto& served : progress.served) {
    served.traffic->service_ns += per_row * static_cast<double>(served.rows);
  }
}

void OwnedPartitions::BeginPull(const PullRequest& request, PullReply* reply) {
  ++counters_.pulls;
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
  if (reply->values.Resize(floats * sizeof(float))) return;
  for (wire::PartReply& part : reply->parts) part.code = PartCode::kRetry;
}

Progress OwnedPartitions::Pull(const PullRequest& request, const Slice& slice, PullReply* reply,
                               RequestProgress* progress) {
  if (slice.abandoned) return Progress::kDone;
  if (slice.first) {
    progress->Begin();
    BeginPull(request, reply);
  }
  while (progress->part < request.parts.size()) {
    if (slice.work->spent()) return Progress::kMore;
    CollectGroups(request, reply, *progress);
    const Gathered gathered = Gather(pull_groups_, progress->in_part.row, slice.work);
    const bool all = FinishGroups(request, gathered, reply, progress);
    if (!gathered.status.ok() && all) {
      const bool unknown = absl::IsNotFound(gathered.status);
      const wire::PullPart& part = request.parts[progress->part];
      const std::string why =
          unknown ? fmt::format("table {} is not known", part.groups[progress->in_part.group].table)
                  : std::string(Message(gathered.status));
      reply->text = fmt::format("partition {}: {}", part.partition, why);
      FinishPart(unknown ? PartCode::kRetry : PartCode::kBadRequest, request, reply, progress);
      slice.work->Spend(kPartWork);
    } else if (all && gathered.group < pull_groups_.size()) {
      return Progress::kMore;
    }
  }
  MUSTER_CHECK(reply->values.Resize(progress->floats * sizeof(float)));
  return Progress::kDone;
}

void OwnedPartitions::CollectGroups(const PullRequest& request, PullReply* reply,
                                    const RequestProgress& progress) {
  pull_groups_.clear();
  std::span<const uint64_t> keys = request.keys.subspan(progress.keys);
  std::span<float> values = reply->values.floats().subspan(progress.floats);
  size_t first = progress.in_part.group;
  for (size_t p = progress.part; p < request.parts.size(); ++p, first = 0) {
    const wire::PullPart& part = request.parts[p];
    wire::PartReply& answer = reply->parts[p];
    // Its owner may have changed since the slice before.
    if (answer.code == PartCode::kOk) answer.code = Admit(part.partition, part.owner_epoch);
    if (answer.code != PartCode::kOk || part.groups.empty()) {
      pull_groups_.push_back({.more_work = kPartWork});
      keys = keys.subspan(KeyCount(part.groups));
      continue;
    }
    const Partition& partition = *Find(part.partition)->partition;
    for (size_t g = 0; g < part.groups.size(); ++g) {
      const size_t count = part.groups[g].keys, floats = count * Width(part.groups[g].table);
      if (g >= first) {
        pull_groups_.push_back({.table = partition.FindTable(TableId(part.groups[g].table)),
                                .keys = keys.first(count),
                                .values = values.first(floats),
                                .goes_on = g > first,
                                .more_work = g + 1 == part.groups.size() ? kPartWork : 0});
      }
      keys = keys.subspan(count);
      values = values.subspan(floats);
      if (pull_groups_.size() >= kGroupsAtOnce) return;
    }
    // With rows that do not fit into the encoding, the rows behind it lie elsewhere.
    if (progress.one_part) return;
  }
}

bool OwnedPartitions::FinishGroups(const PullRequest& request, const Gathered& gathered,
                                   PullReply* reply, RequestProgress* progress) {
  PartProgress& at = progress->in_part;
  for (size_t i = 0; i < pull_groups_.size() && i <= gathered.group; ++i) {
    const PullGroup& group = pull_groups_[i];
    const wire::PullPart& part = request.parts[progress->part];
    const bool whole = i < gathered.group;
    // A part that is refused by now has a group without rows.
    const size_t end = std::max(at.row, whole ? group.keys.size() : gathered.row);
    const size_t begin = std::exchange(at.row, end);
    if (!FitEncoding(request, group, begin, at.row, part, reply)) {
      FinishPart(PartCode::kBadRequest, request, reply, progress);
      progress->one_part = true;
      return false;
    }
    counters_.pulled_rows += at.row - begin;
    if (!whole) break;
    at = {.group = at.group + 1};
    if (group.more_work != 0) {
      FinishPart(reply->parts[progress->part].code, request, reply, progress);
    }
  }
  return true;
}

void OwnedPartitions::FinishPart(PartCode code, const PullRequest& request, PullReply* reply,
                                 RequestProgress* progress) {
  const wire::PullPart& part = request.parts[progress->part];
  const uint64_t keys = KeyCount(part.groups);
  reply->parts[progress->part].code = code;
  if (code == PartCode::kOk) {
    uint64_t floats = 0;
    for (const wire::Group& group : part.groups)
      floats += uint64_t{group.keys} * Width(group.table);
    progress->floats += floats;
    CountPart(Find(part.partition), &Traffic::pulls, keys, floats, progress);
  }
  progress->keys += keys;
  ++progress->part;
  progress->BeginPart();
}

void OwnedPartitions::BeginPush(const PushRequest& request, PushReply* reply,
                                RequestProgress* progress) {
  ++counters_.pushes;
  // Where a part's rows begin follows from the widths of all tables before it, so a push is only
  // served when all of them are known and everything adds up.
  uint64_t floats = 0;
  progress->all_known = true;
  for (const wire::PushPart& part : request.parts) {
    for (const wire::Group& group : part.groups) {
      const uint32_t width = Width(group.table);
      if (width == 0) progress->all_known = false;
      floats += uint64_t{group.keys} * width;
    }
  }
  progress->fits = floats == request.values.size();
  if (progress->all_known && !progress->fits) {
    reply->text = fmt::format(
        "the push has {} values, its keys and the widths of its tables make "
        "{}: the worker has another idea of a table's width",
        request.values.size(), floats);
  }
  reply->parts.reserve(request.parts.size());
}

Progress OwnedPartitions::Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                               RequestProgress* progress) {
  if (slice.first) {
    progress->Begin();
    BeginPush(request, reply, progress);
  }
  const bool served = progress->all_known && progress->fits && !slice.abandoned;
  ahead_part_ = progress->part;
  ahead_keys_ = progress->keys;
  push_ahead_.Clear();
  for (; progress->part < request.parts.size(); ++progress->part, progress->BeginPart()) {
    if (served) LookAhead(request);
    const bool half = progress->in_part.stage == PartProgress::Stage::kApplying;
    if (slice.abandoned && (!half || MUSTER_PLANTED(kHalfLeft))) return Progress::kDone;
    if (slice.work->spent()) return Progress::kMore;
    const std::optional<wire::PartReply> answer = PushPart(request, slice, reply, progress);
    if (!answer.has_value()) return Progress::kMore;
    slice.work->Spend(kPartWork);
    reply->parts.push_back(*answer);
    if (!progress->all_known || !progress->fits) continue;
    for (const wire::Group& group : request.parts[progress->part].groups) {
      if (served) push_ahead_.Pass(group.keys);
      progress->keys += group.keys;
      progress->floats += size_t{group.keys} * Width(group.table);
    }
  }
  return Progress::kDone;
}

void OwnedPartitions::LookAhead(const PushRequest& request) {
  for (; ahead_part_ < request.parts.size() && push_ahead_.wants_more(); ++ahead_part_) {
    const wire::PushPart& part = request.parts[ahead_part_];
    const Slot* const slot = Find(part.partition);
    const Partition* const partition = slot == nullptr ? nullptr : slot->partition.get();
    for (const wire::Group& group : part.groups) {
      const Table* const table =
          partition == nullptr ? nullptr : partition->FindTable(TableId(group.table));
      push_ahead_.Expect(table, request.keys.subspan(ahead_keys_, group.keys));
      ahead_keys_ += group.keys;
    }
  }
  push_ahead_.FindRows();
}

std::optional<wire::PartReply> OwnedPartitions::PushPart(const PushRequest& request,
                                                         const Slice& slice, PushReply* reply,
                                                         RequestProgress* progress) {
  const wire::PushPart& part = request.parts[progress->part];
  const auto answer = [&](PartCode code) {
    return wire::PartReply{.partition = part.partition, .code = code};
  };
  Slot* const slot = Find(part.partition);
  if (progress->state != 0 && (slot->partition == nullptr || slot->state != progress->state)) {
    progress->BeginPart();  // the state that it was for is gone, and with it what was applied
  }
  if (progress->in_part.stage != PartProgress::Stage::kApplying) {
    const PartCode code = Admit(part.partition, part.owner_epoch);
    if (code == PartCode::kWrongOwner) ++counters_.parts_wrong_owner;
    if (code != PartCode::kOk) return answer(code);
    if (!progress->all_known) return answer(PartCode::kRetry);
    if (!progress->fits) return answer(PartCode::kBadRequest);
    if (slot->partition->holds_half()) return std::nullopt;  // of another request: after it
    progress->state = slot->state;
  }
  const std::optional<ApplyResult> result = ApplyPart(slot, request, slice.work, progress);
  if (!result.has_value()) return std::nullopt;
  if (image_waits_) {
    image_waits_ = false;
    image_ready_ = true;
  }
  return AnswerOf(slot, part, *result, &reply->text, progress);
}

std::optional<ApplyResult> OwnedPartitions::ApplyPart(Slot* slot, const PushRequest& request,
                                                      WorkLimit* work, RequestProgress* progress) {
  const wire::PushPart& part = request.parts[progress->part];
  std::span<const uint64_t> keys = request.keys.subspan(progress->keys);
  std::span<const float> values = request.values.subspan(progress->floats);
  part_.shard = {DatasetId(part.dataset), EpochIndex(part.epoch), ShardIndex(part.shard_index)};
  part_.minibatch = MinibatchIndex(part.minibatch);
  part_.token = LeaseToken::FromValue(part.token);
  part_.step = part.step;
  part_.groups.clear();
  for (const wire::Group& group : part.groups) {
    const size_t floats = size_t{group.keys} * Width(group.table);
    part_.groups.push_back({TableId(group.table), keys.first(group.keys), values.first(floats)});
    keys = keys.subspan(group.keys);
    values = values.subspan(floats);
  }
  if (MUSTER_PLANTED_CALL(AppliesTablesAlone(slot))) part_.groups = {part_.groups.back()};
  return slot->partition->Apply(part_, &progress->in_part, work);
}

wire::PartReply OwnedPartitions::AnswerOf(Slot* slot, const wire::PushPart& part,
                                          const ApplyResult& result, std::string* text,
                                          RequestProgress* progress) {
  wire::PartReply reply{.partition = part.partition};
  switch (result.code) {
    case ApplyCode::kApplied:
      ++counters_.parts_applied;
      break;
    case ApplyCode::kSkipped:
      if (!part.groups.empty()) ++counters_.parts_skipped;
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
  if (reply.code == PartCode::kOk && !part.groups.empty()) {
    uint64_t rows = 0, floats = 0;
    for (const wire::Group& group : part.groups) {
      rows += group.keys;
      floats += uint64_t{group.keys} * Width(group.table);
    }
    CountPart(slot, &Traffic::pushes, rows, floats, progress);
  }
  return reply;
}

void OwnedPartitions::Pull(const PullRequest& request, PullReply* reply) {
  WorkLimit work = WorkLimit::None();
  const Slice slice{.work = &work};
  MUSTER_CHECK(Pull(request, slice, reply, &whole_) == Progress::kDone);
}

void OwnedPartitions::Push(const PushRequest& request, PushReply* reply) {
  WorkLimit work = WorkLimit::None();
  const Slice slice{.work = &work};
  MUSTER_CHECK(Push(request, slice, reply, &whole_) == Progress::kDone);
}

}  // namespace muster::ps
