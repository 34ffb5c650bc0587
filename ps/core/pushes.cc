#include "ps/core/pushes.h"

#include <fmt/format.h>

#include <span>

#include "base/check.h"

namespace muster::ps {
namespace {

using wire::PartCode;

ShardId ShardOf(const wire::PushIdentity& push) {
  return {DatasetId(push.dataset), EpochIndex(push.epoch), ShardIndex(push.shard_index)};
}

}  // namespace

void Pushes::Begin(const PushRequest& request, PushReply* reply, RequestProgress* progress) {
  ++lane_->counters.pushes;
  // The place of a part's rows depends on the widths of all tables before it. So a push is served
  // only when all its tables are known and the number of its values is right.
  uint64_t floats = 0;
  progress->all_known = true;
  for (const wire::Part& part : request.parts) {
    for (const wire::Group& group : part.groups) {
      const uint32_t width = tables_->Width(group.table);
      if (width == 0) progress->all_known = false;
      floats += uint64_t{group.keys} * width;
    }
  }
  progress->fits = floats == request.values.size();
  if (progress->all_known && !progress->fits) {
    reply->text = fmt::format(
        "the push has {} values, but its keys and the widths of its tables require {}: the worker "
        "assumes another width of a table",
        request.values.size(), floats);
  }
  reply->parts.reserve(request.parts.size());
}

Progress Pushes::Serve(const PushRequest& request, const Slice& slice, PushReply* reply,
                       RequestProgress* progress) {
  part_whole_ = false;
  if (slice.first) {
    progress->Begin();
    Begin(request, reply, progress);
  }
  const bool served = progress->all_known && progress->fits && !slice.abandoned;
  const auto first_group = [progress] {
    const bool applying = progress->in_part.stage == PartProgress::Stage::kApplying;
    return applying ? progress->in_part.group : 0;
  };
  if (served) ahead_.Begin(request, progress->part, first_group(), progress->keys);
  for (; progress->part < request.parts.size(); ++progress->part, progress->BeginPart()) {
    const size_t groups_left = request.parts[progress->part].groups.size() - first_group();
    const size_t passed_before = ahead_.passed_groups();
    // A half applied part is completed even if nobody wants its answer any more, because no other
    // request would complete it.
    const bool half = progress->in_part.stage == PartProgress::Stage::kApplying;
    if (slice.abandoned && !half) return Progress::kDone;
    if (slice.work->spent()) return Progress::kMore;
    const std::optional<wire::PartReply> answer = ServePart(request, slice, reply, progress);
    if (!answer.has_value()) return Progress::kMore;
    slice.work->Spend(kPartWork);
    reply->parts.push_back(*answer);
    if (!progress->all_known || !progress->fits) continue;
    for (const wire::Group& group : request.parts[progress->part].groups) {
      progress->keys += group.keys;
      progress->floats += size_t{group.keys} * tables_->Width(group.table);
    }
    // It did not apply all of the part, so what is announced is not what comes next.
    if (served && ahead_.passed_groups() - passed_before != groups_left) {
      ahead_.Begin(request, progress->part + 1, 0, progress->keys);
    }
  }
  return Progress::kDone;
}

void Pushes::Ahead::Begin(const PushRequest& request, size_t part, size_t group, size_t keys) {
  Clear();
  request_ = &request;
  shard_ = ShardOf(request.push);
  part_ = part;
  group_ = 0;
  keys_ = keys;
  if (part_ == request.parts.size()) return;
  for (; group_ < group; ++group_) keys_ += request.parts[part_].groups[group_].keys;
  EnterPart();
  Refill();
}

void Pushes::Ahead::EnterPart() {
  const wire::Part part = request_->parts[part_];
  const Slot* const slot = lane_->Find(PartitionId(part.partition));
  groups_ = part.groups;
  partition_ = slot == nullptr ? nullptr : slot->partition.get();
  if (partition_ != nullptr) partition_->PrefetchWindow(shard_);
}

void Pushes::Ahead::Refill() {
  while (part_ < request_->parts.size() && wants_more()) {
    if (group_ == groups_.size()) {
      group_ = 0;
      if (++part_ < request_->parts.size()) EnterPart();
      continue;
    }
    const wire::Group& group = groups_[group_++];
    const Table* const table =
        partition_ == nullptr ? nullptr : partition_->FindTable(TableId(group.table));
    Expect(table, request_->keys.subspan(keys_, group.keys));
    keys_ += group.keys;
  }
  FindRows();
}

std::optional<wire::PartReply> Pushes::ServePart(const PushRequest& request, const Slice& slice,
                                                 PushReply* reply, RequestProgress* progress) {
  const wire::Part& part = request.parts[progress->part];
  const auto answer = [&](PartCode code) {
    return wire::PartReply{.partition = part.partition, .code = code};
  };
  Slot* const slot = lane_->Find(PartitionId(part.partition));
  if (progress->state != 0 && (slot->partition == nullptr || slot->state != progress->state)) {
    progress->BeginPart();  // the state, with all that was applied to it, is gone
  }
  if (progress->in_part.stage != PartProgress::Stage::kApplying) {
    const PartCode code = lane_->Admit(part.partition, part.owner_epoch);
    if (code == PartCode::kWrongOwner) ++lane_->counters.parts_wrong_owner;
    if (code != PartCode::kOk) return answer(code);
    if (!progress->all_known) return answer(PartCode::kRetry);
    if (!progress->fits) return answer(PartCode::kBadRequest);
    if (slot->partition->holds_half()) return std::nullopt;  // wait for the part of another request
    MUSTER_CHECK(slot->epoch == OwnerEpoch(part.owner_epoch));
    progress->state = slot->state;
  }
  const std::optional<ApplyResult> result = Apply(slot, request, slice, progress);
  if (!result.has_value()) return std::nullopt;
  part_whole_ = true;
  return AnswerOf(*slot, part, *result, &reply->text, progress);
}

std::optional<ApplyResult> Pushes::Apply(Slot* slot, const PushRequest& request, const Slice& slice,
                                         RequestProgress* progress) {
  const wire::Part& part = request.parts[progress->part];
  std::span<const uint64_t> keys = request.keys.subspan(progress->keys);
  std::span<const float> values = request.values.subspan(progress->floats);
  const wire::PushIdentity& push = request.push;
  part_.shard = ShardOf(push);
  part_.minibatch = MinibatchIndex(push.minibatch);
  part_.token = LeaseToken::FromValue(push.token);
  part_.step = push.step;
  part_.groups.clear();
  for (const wire::Group& group : part.groups) {
    const size_t floats = size_t{group.keys} * tables_->Width(group.table);
    part_.groups.push_back({TableId(group.table), keys.first(group.keys), values.first(floats)});
    keys = keys.subspan(group.keys);
    values = values.subspan(floats);
  }
  // Of a request that is abandoned, nothing is announced.
  PushAhead* const ahead = slice.abandoned ? nullptr : &ahead_;
  return slot->partition->Apply(part_, &progress->in_part, slice.work, ahead);
}

wire::PartReply Pushes::AnswerOf(const Slot& slot, const wire::Part& part,
                                 const ApplyResult& result, std::string* text,
                                 RequestProgress* progress) {
  wire::PartReply reply{.partition = part.partition};
  switch (result.code) {
    case ApplyCode::kApplied:
      ++lane_->counters.parts_applied;
      break;
    case ApplyCode::kSkipped:
      if (!part.groups.empty()) ++lane_->counters.parts_skipped;
      reply.skipped = true;
      break;
    case ApplyCode::kMissing:
      reply.code = PartCode::kMissing;
      break;
    case ApplyCode::kStaleLease:
      ++lane_->counters.parts_stale;
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
      floats += uint64_t{group.keys} * tables_->Width(group.table);
    }
    traffic_->CountPart(slot, LaneTraffic::Kind::kPush, rows, floats, progress);
  }
  return reply;
}

}  // namespace muster::ps
