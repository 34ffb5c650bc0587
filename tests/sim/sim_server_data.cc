// What simulated workers ask of simulated lanes.
#include <cstring>
#include <utility>

#include "base/check.h"
#include "ps/engine/table.h"
#include "tests/ps/core/whole_requests.h"
#include "tests/sim/sim_server.h"

namespace muster::sim {

void SimServer::OnData(uint32_t lane, std::shared_ptr<const DataMessage> message,
                       std::function<void(DataReply)> answer) {
  if (lane >= lanes_.size() || lanes_[lane].owned == nullptr) return;
  if (env_->knobs.slices) {
    auto request = std::make_shared<Sliced>();
    request->message = std::move(message);
    request->answer = std::move(answer);
    return Post(&lanes_[lane], [this, lane, request] { GoOn(&lanes_[lane], request); });
  }
  Post(&lanes_[lane], [this, lane, message, answer = std::move(answer)] {
    DataReply reply = message->push ? Push(&lanes_[lane], *message) : Pull(&lanes_[lane], *message);
    answer(env_->knobs.wire ? ThroughWire(reply, message->push.has_value()) : std::move(reply));
  });
}

DataReply SimServer::Pull(Lane* lane, const DataMessage& message) {
  ps::PullReply reply;
  const ps::RequestProgress progress = ps::PullWhole(
      {message.parts, message.keys, wire::Encoding::kFloat32}, lane->owned.get(), &reply);
  lane->owned->CountServed(kServed, progress);
  CheckVersions(lane, message, reply);
  return ReplyOf(std::move(reply));
}

void SimServer::CheckVersions(Lane* lane, const DataMessage& message, const ps::PullReply& reply) {
  size_t key = 0, version = 0;
  for (const wire::Part& part : message.parts) {
    const ps::Slot* const slot = lane->owned->Look(PartitionId(part.partition));
    const bool served = slot != nullptr && slot->partition != nullptr &&
                        slot->epoch == OwnerEpoch(part.owner_epoch);
    for (const wire::Group& group : part.groups) {
      const std::span<const uint64_t> keys = std::span(message.keys).subspan(key, group.keys);
      key += group.keys;
      if (!group.versioned()) continue;
      const uint64_t answered = reply.versions[version++];
      if (!served || answered == wire::kNoVersion) continue;
      const ps::Table* const table = slot->partition->FindTable(TableId(group.table));
      if (table == nullptr || table->version() != answered) continue;
      std::vector<float> rows(keys.size() * table->dim());
      MUSTER_CHECK(slot->partition->Pull(TableId(group.table), keys, rows).ok());
      if (group.Unchanged(answered)) env_->probes.Hit(Probe::kUnchangedRows);
      env_->oracle.OnVersion({slot->id, slot->epoch, TableId(group.table), answered},
                             std::move(rows));
    }
  }
}

DataReply SimServer::ReplyOf(ps::PullReply reply) {
  auto rows = std::make_shared<float[]>(reply.values.size() / sizeof(float) + 1);
  if (reply.values.size() > 0) {
    std::memcpy(rows.get(), reply.values.data(), reply.values.size());
  }
  return {std::move(reply.parts), std::move(reply.text), std::move(rows),
          std::move(reply.versions)};
}

DataReply SimServer::Push(Lane* lane, const DataMessage& message) {
  ps::PushReply reply;
  const ps::RequestProgress progress = ps::PushWhole(
      {*message.push, message.parts, message.keys, message.values}, lane->owned.get(), &reply);
  lane->owned->CountServed(kServed, progress);
  CheckPushed(lane, message, reply, 0);
  return {std::move(reply.parts), std::move(reply.text), nullptr, {}};
}

void SimServer::GoOn(Lane* lane, const std::shared_ptr<Sliced>& request) {
  const DataMessage& message = *request->message;
  WorkLimit work(1 + slices_.Below(600));
  const ps::Slice slice{std::exchange(request->first, false), request->abandoned, &work, nullptr};
  ps::Progress progress;
  if (message.push) {
    progress = lane->owned->Push({*message.push, message.parts, message.keys, message.values},
                                 slice, &request->push, &request->progress);
    CheckPushed(lane, message, request->push, request->checked);
    request->checked = request->push.parts.size();
    CountSlice(lane, *request, progress);
    if (lane->owned->TakeImageReady()) {
      env_->probes.Hit(Probe::kImageWaits);
      Pump(lane);
    }
  } else {
    progress = lane->owned->Pull({message.parts, message.keys, wire::Encoding::kFloat32}, slice,
                                 &request->pull, &request->progress);
  }
  if (progress == ps::Progress::kMore) {
    if (slices_.Below(100) == 0) request->abandoned = true;
    return PostSlice(lane, [this, lane, request] { GoOn(lane, request); });
  }
  if (request->abandoned) return;
  lane->owned->CountServed(kServed, request->progress);
  if (!message.push) CheckVersions(lane, message, request->pull);
  DataReply reply =
      message.push
          ? DataReply{std::move(request->push.parts), std::move(request->push.text), nullptr, {}}
          : ReplyOf(std::move(request->pull));
  request->answer(env_->knobs.wire ? ThroughWire(reply, message.push.has_value())
                                   : std::move(reply));
}

void SimServer::CountSlice(Lane* lane, const Sliced& request, ps::Progress progress) {
  if (progress == ps::Progress::kDone) return;
  const wire::PushIdentity& push = *request.message->push;
  const wire::Part part = request.message->parts[request.push.parts.size()];
  const ps::Partition* partition = ps::Served(*lane->owned, PartitionId(part.partition));
  if (partition == nullptr || !partition->holds_half()) return;
  const bool its_own = partition->InWindow(
      {DatasetId(push.dataset), EpochIndex(push.epoch), ShardIndex(push.shard_index)},
      MinibatchIndex(push.minibatch));
  env_->probes.Hit(its_own ? Probe::kHalfPart : Probe::kHeldPart);
  if (its_own && request.abandoned) env_->probes.Hit(Probe::kHalfAbandoned);
}

void SimServer::CheckPushed(Lane* lane, const DataMessage& message, const ps::PushReply& reply,
                            size_t from) {
  const wire::PushIdentity& push = *message.push;
  const ShardId shard{DatasetId(push.dataset), EpochIndex(push.epoch),
                      ShardIndex(push.shard_index)};
  const LeaseToken token = LeaseToken::FromValue(push.token);
  for (size_t i = from; i < reply.parts.size(); ++i) {
    const wire::Part part = message.parts[i];
    const wire::PartReply& answer = reply.parts[i];
    env_->Say(*process_, "part {}/{}/{} minibatch {} partition {} token {}: {}{}", push.dataset,
              push.epoch, push.shard_index, push.minibatch, part.partition, ToString(token),
              static_cast<int>(answer.code), answer.skipped ? " skipped" : "");
    if (env_->forgotten.contains(token)) env_->probes.Hit(Probe::kForgottenPart);
    if (part.groups.empty()) {
      if (answer.code == wire::PartCode::kOk) env_->probes.Hit(Probe::kAskedThere);
      if (answer.code == wire::PartCode::kMissing) env_->probes.Hit(Probe::kAskedMissing);
    } else if (answer.skipped) {
      env_->probes.Hit(Probe::kSkipped);
    }
    if (answer.code == wire::PartCode::kStaleLease) env_->probes.Hit(Probe::kStaleLease);
    if (answer.code == wire::PartCode::kWrongOwner) env_->probes.Hit(Probe::kWrongOwner);
    if (answer.code == wire::PartCode::kRetry) env_->probes.Hit(Probe::kRetry);
    if (answer.code == wire::PartCode::kBadRequest) env_->oracle.Fail("bad-request", reply.text);
    const ps::Partition* partition = ps::Served(*lane->owned, PartitionId(part.partition));
    if (partition == nullptr) continue;
    env_->oracle.OnPart(*partition, shard, MinibatchIndex(push.minibatch),
                        answer.code == wire::PartCode::kOk);
  }
}

}  // namespace muster::sim
