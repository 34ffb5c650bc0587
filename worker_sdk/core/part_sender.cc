#include "worker_sdk/core/part_sender.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "base/random.h"

namespace muster::sdk {
namespace {

bool IsQuestion(const RowBatch& batch) {
  return batch.plan.keys.empty();
}

}  // namespace

void PartSender::SetMap(std::shared_ptr<const PartitionMap> map, TimePoint now) {
  if (map_ && map->version <= map_->version) return;
  map_ = std::move(map);
  wants_map_ = false;
  lanes_.clear();
  for (const ServerEndpoint& server : map_->servers) {
    lanes_[server.id] = static_cast<uint32_t>(server.lanes.size());
  }
  for (auto& [id, delivery] : deliveries_) {
    for (size_t i = 0; i < delivery.parts.size(); ++i) {
      PartState& part = delivery.parts[i];
      if (part.state == State::kOk) continue;
      PartitionId partition = delivery.batch->plan.parts[i].partition;
      std::optional<LaneAddress> lane = LaneOf(partition);
      bool same =
          lane && *lane == part.lane && map_->partitions[partition.value()].epoch == part.epoch;
      if (same) continue;
      part.unanswered |= part.state == State::kInFlight;
      part.state = State::kWaiting;
      part.attempts = part.refusals = 0;
      part.not_before = now;
      delivery.next_due = std::min(delivery.next_due, now);
    }
  }
}

DeliveryId PartSender::AddPull(std::shared_ptr<const RowBatch> batch, TimePoint now) {
  return Add(std::nullopt, std::move(batch), now);
}

DeliveryId PartSender::AddPush(const PushIdentity& push, std::shared_ptr<const RowBatch> batch,
                               TimePoint now) {
  return Add(push, std::move(batch), now);
}

DeliveryId PartSender::Add(std::optional<PushIdentity> push, std::shared_ptr<const RowBatch> batch,
                           TimePoint now) {
  DeliveryId id = std::exchange(next_delivery_, next_delivery_.Next());
  MUSTER_CHECK(!deliveries_.contains(id));
  Delivery& delivery = deliveries_[id];
  delivery.push = push;
  delivery.remaining = batch->plan.parts.size();
  delivery.parts.resize(delivery.remaining);
  for (PartState& part : delivery.parts) part.not_before = now;
  delivery.next_due = delivery.parts.empty() ? TimePoint::max() : now;
  if (!push) BeginRows(*batch, &delivery);
  delivery.batch = std::move(batch);
  if (IsOutstandingPush(delivery)) {
    ++outstanding_pushes_;
    outstanding_push_floats_ += delivery.batch->plan.value_count;
  }
  return id;
}

bool PartSender::IsOutstandingPush(const Delivery& delivery) {
  return delivery.push.has_value() && delivery.remaining > 0 && !IsQuestion(*delivery.batch);
}

void PartSender::EndOutstandingPush(const Delivery& delivery) {
  MUSTER_CHECK(outstanding_pushes_ > 0);
  --outstanding_pushes_;
  outstanding_push_floats_ -= delivery.batch->plan.value_count;
}

bool PartSender::PushesBefore(DeliveryId id) const {
  return std::ranges::any_of(deliveries_, [id](const auto& entry) {
    return entry.first < id && IsOutstandingPush(entry.second);
  });
}

void PartSender::Cancel(DeliveryId id) {
  auto it = deliveries_.find(id);
  if (it == deliveries_.end()) return;
  if (IsOutstandingPush(it->second)) EndOutstandingPush(it->second);
  deliveries_.erase(it);
}

std::optional<RestoreEpoch> PartSender::SpeaksOf(const PartState& part, RequestId id) const {
  // Rule 2.2: an answer counts as of the map under which it was asked for.
  return IsAwaited(part, id) ? std::optional(part.sent_under) : std::nullopt;
}

PartSender::Outcome PartSender::OnReply(RequestId id, std::span<const wire::PartReply> parts,
                                        const ReceivedRows& rows, TimePoint now) {
  Outcome outcome;
  auto it = in_flight_.find(id);
  if (it == in_flight_.end()) return outcome;
  if (!IsOfLength(it->second, parts, rows)) {
    OnUnanswered(id, now);
    return outcome;
  }
  if (!it->second.push && it->second.placed.empty()) MoveRows(PlaceRows(id, parts, rows));
  InFlight request = std::move(it->second);
  in_flight_.erase(it);
  CountAnswer(request, parts, now);
  auto found = deliveries_.find(request.delivery);
  if (found == deliveries_.end()) return outcome;
  Delivery& delivery = found->second;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t index = request.parts[i];
    MUSTER_CHECK(index < delivery.parts.size());
    const bool ok = parts[i].code == wire::PartCode::kOk;
    PartState& part = delivery.parts[index];
    const std::optional<RestoreEpoch> asked_under = SpeaksOf(part, id);
    if (!asked_under.has_value()) continue;
    part.refusals = 0;
    const bool whole = delivery.push.has_value() || request.placed[i];
    // The part is in the rows, or has them.
    const bool in_rows = whole && ok;
    const PartAnswer answer{delivery.batch->plan.parts[index].partition, in_rows, *asked_under};
    const wire::PartCode refused = ok ? wire::PartCode::kRetry : parts[i].code;
    switch (in_rows ? wire::PartCode::kOk : refused) {
      case wire::PartCode::kOk:
        if (parts[i].skipped && !part.unanswered && !request.question && !delivery.was_in_rows) {
          outcome.was_in_rows = delivery.was_in_rows = true;
        }
        Settle(&delivery, index, answer, &outcome);
        break;
      case wire::PartCode::kMissing:
        if (delivery.push && delivery.batch->plan.parts[index].group_count == 0) {
          Settle(&delivery, index, answer, &outcome);
        } else {
          SendAgain(&delivery, &part, now);  // the answer is for another request
        }
        break;
      case wire::PartCode::kStaleLease:
        if (delivery.push) outcome.stale = delivery.push->token;
        SendAgain(&delivery, &part, now);
        break;
      case wire::PartCode::kBadRequest:
        outcome.bad_request = true;
        SendAgain(&delivery, &part, now);
        break;
      case wire::PartCode::kWrongOwner:
        wants_map_ = true;
        [[fallthrough]];
      case wire::PartCode::kRetry:
        SendAgain(&delivery, &part, now);
        break;
    }
  }
  if (delivery.remaining > 0) return outcome;
  outcome.finished = request.delivery;
  if (!delivery.push) {
    TakeTensors(request.delivery, &delivery);
  } else {
    if (!IsQuestion(*delivery.batch)) EndOutstandingPush(delivery);
    deliveries_.erase(found);
  }
  return outcome;
}

void PartSender::Settle(Delivery* delivery, uint32_t part, const PartAnswer& answer,
                        Outcome* outcome) {
  PartState& state = delivery->parts[part];
  MUSTER_CHECK(state.state == State::kInFlight && delivery->remaining > 0);
  MUSTER_CHECK(answer.sent_under == state.sent_under);
  state.state = State::kOk;
  --delivery->remaining;
  const auto is_ok = [](const PartState& one) { return one.state == State::kOk; };
  MUSTER_CHECK(delivery->remaining > 0 || std::ranges::all_of(delivery->parts, is_ok));
  if (!delivery->push) return;
  outcome->parts.push_back(answer);
}

void PartSender::CountAnswer(const InFlight& request, std::span<const wire::PartReply> parts,
                             TimePoint now) {
  // A large delivery has several requests, which are sent together and answered one after the
  // other. Each is timed by itself. Otherwise, a server would look slower with more requests.
  for (auto& [id, other] : in_flight_) {
    if (other.delivery == request.delivery && other.lane == request.lane) other.turn_since = now;
  }
  // Refusals and questions cost a server nothing, so they would make it look fast.
  const bool served =
      !request.question && std::ranges::any_of(parts, [](const wire::PartReply& part) {
        return part.code == wire::PartCode::kOk;
      });
  if (!served) return;
  Peer& peer = peers_[request.lane.server];
  if (request.lane.incarnation < peer.incarnation) return;  // of a process that has been replaced
  if (request.lane.incarnation > peer.incarnation)
    peer = Peer{.incarnation = request.lane.incarnation};
  if (request.push) {
    ++peer.pushes;
    peer.push_time += now - request.turn_since;
  } else {
    ++peer.pulls;
    peer.pull_time += now - request.turn_since;
  }
}

std::vector<PeerTimes> PartSender::Peers(std::optional<ServerId> after, size_t limit) const {
  const auto micros = [](std::chrono::nanoseconds time) {
    return static_cast<uint64_t>(time / std::chrono::microseconds(1));
  };
  std::vector<PeerTimes> list;
  auto next = after.has_value() ? peers_.upper_bound(*after) : peers_.begin();
  for (size_t left = std::min(limit, peers_.size()); left > 0; --left, ++next) {
    if (next == peers_.end()) next = peers_.begin();
    const auto& [server, peer] = *next;
    list.push_back({server, peer.incarnation, peer.pulls, micros(peer.pull_time), peer.pushes,
                    micros(peer.push_time)});
  }
  return list;
}

void PartSender::OnUnanswered(RequestId id, TimePoint now) {
  auto it = in_flight_.find(id);
  if (it == in_flight_.end()) return;
  InFlight request = std::move(it->second);
  in_flight_.erase(it);
  auto found = deliveries_.find(request.delivery);
  if (found == deliveries_.end()) return;
  for (uint32_t index : request.parts) {
    PartState& part = found->second.parts[index];
    if (!IsAwaited(part, id)) continue;
    wants_map_ = true;  // the server may have come back under another incarnation
    part.unanswered = true;
    SendAgain(&found->second, &part, now);
  }
}

bool PartSender::OnRefused(RequestId id, TimePoint now) {
  bool hopeless = false;
  const auto request = in_flight_.find(id);
  if (request != in_flight_.end() && deliveries_.contains(request->second.delivery)) {
    Delivery& delivery = deliveries_[request->second.delivery];
    for (uint32_t index : request->second.parts) {
      PartState& part = delivery.parts[index];
      if (!IsAwaited(part, id)) continue;
      part.refusals = static_cast<uint8_t>(std::min(part.refusals + 1u, kRefusalsMax));
      hopeless |= part.refusals == kRefusalsMax;
    }
  }
  OnUnanswered(id, now);
  return hopeless;
}

void PartSender::SendAgain(Delivery* delivery, PartState* part, TimePoint now) {
  MUSTER_CHECK(part->state != State::kOk);
  const auto backoff =
      PauseAfter(part->attempts + 1u, {.first = kBackoffMin, .longest = kBackoffMax});
  // Adds up to a quarter, so that the parts of many workers do not come back at the same time. It
  // follows from the request, because the core has no generator.
  uint64_t jitter = Mix64(part->request.value()) % static_cast<uint64_t>(backoff.count() / 4);
  part->state = State::kWaiting;
  part->attempts = static_cast<uint8_t>(std::min<int>(part->attempts + 1, 100));
  part->not_before = now + backoff + std::chrono::nanoseconds(jitter);
  delivery->next_due = std::min(delivery->next_due, part->not_before);
}

std::optional<LaneAddress> PartSender::LaneOf(PartitionId partition) const {
  if (!map_ || partition.value() >= map_->partitions.size()) return std::nullopt;
  const PartitionEntry& entry = map_->partitions[partition.value()];
  auto lanes = lanes_.find(entry.owner);
  if (lanes == lanes_.end() || lanes->second == 0) return std::nullopt;
  return LaneAddress{entry.owner, entry.owner_incarnation, partition.value() % lanes->second};
}

SendRequests PartSender::Flush(TimePoint now) {
  SendRequests out;
  PooledVector<DeliveryId> due;
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.next_due <= now) due.push_back(id);
  }
  std::sort(due.begin(), due.end());  // oldest first, and the same order in every run of a seed
  for (DeliveryId id : due) FlushDelivery(id, &deliveries_[id], now, &out);
  return out;
}

bool PartSender::MayLeave(const Delivery& delivery) const {
  return map_ && (!delivery.push || map_->restore_epoch >= delivery.push->restore_epoch);
}

void PartSender::FlushDelivery(DeliveryId id, Delivery* delivery, TimePoint now,
                               SendRequests* out) {
  if (!MayLeave(*delivery)) {
    wants_map_ = true;
    delivery->next_due = now + kBackoffMax;
    return;
  }
  delivery->next_due = TimePoint::max();
  const RowPlan& plan = delivery->batch->plan;
  const size_t first = out->size();
  const uint64_t floats_max =
      std::clamp(plan.value_count / kRequestsOfDelivery, kRequestFloatsMin, kRequestFloatsMax);
  // Parts for one lane lie together in a plan, so nearly all use the request of the part before.
  SendRequest* request = nullptr;
  InFlight* in_flight = nullptr;
  for (uint32_t i = 0; i < delivery->parts.size(); ++i) {
    PartState& part = delivery->parts[i];
    if (part.state != State::kWaiting) continue;
    if (part.not_before > now) {
      delivery->next_due = std::min(delivery->next_due, part.not_before);
      continue;
    }
    const PlanPart& rows = plan.parts[i];
    const std::optional<LaneAddress> lane = LaneOf(rows.partition);
    if (!lane) {  // no map has its server yet
      wants_map_ = true;
      SendAgain(delivery, &part, now);
      continue;
    }
    const auto has_room = [&](const SendRequest& r) {
      return r.lane == *lane && r.keys + rows.key_count <= kRequestKeysMax &&
             r.floats + rows.value_count <= floats_max;
    };
    if (request == nullptr || !has_room(*request)) {
      const auto found =
          std::find_if(out->begin() + static_cast<std::ptrdiff_t>(first), out->end(), has_room);
      request = found != out->end() ? &*found : BeginRequest(id, *delivery, i, *lane, now, out);
      in_flight = &in_flight_[request->id];
    }
    request->keys += rows.key_count;
    request->floats += rows.value_count;
    part.state = State::kInFlight;
    part.request = request->id;
    part.lane = *lane;
    part.epoch = map_->partitions[rows.partition.value()].epoch;
    part.sent_under = map_->restore_epoch;
    MUSTER_CHECK(!delivery->push || part.sent_under >= delivery->push->restore_epoch);
    request->items.push_back({i, part.epoch});
    in_flight->parts.push_back(i);
    if (delivery->tensors.empty()) continue;
    const auto asked = static_cast<std::ptrdiff_t>(request->versions.size());
    AskByVersion(delivery, rows, part.epoch, &request->versions);
    in_flight->versions.insert(in_flight->versions.end(), request->versions.begin() + asked,
                               request->versions.end());
  }
}

SendRequest* PartSender::BeginRequest(DeliveryId id, const Delivery& delivery, uint32_t first_part,
                                      const LaneAddress& lane, TimePoint now, SendRequests* out) {
  const RequestId request = std::exchange(next_request_, next_request_.Next());
  out->push_back({request, lane, delivery.push, delivery.batch, {}, {}, 0, 0});
  InFlight& in_flight = in_flight_[request];
  in_flight = {.delivery = id,
               .parts = {},
               .lane = lane,
               .push = delivery.push.has_value(),
               .question = IsQuestion(*delivery.batch),
               .versions = {},
               .placed = {},
               .turn_since = now};
  out->back().items.reserve(delivery.parts.size() - first_part);
  in_flight.parts.reserve(delivery.parts.size() - first_part);
  return &out->back();
}

std::optional<TimePoint> PartSender::NextDue() const {
  TimePoint next = TimePoint::max();
  for (const auto& [id, delivery] : deliveries_) next = std::min(next, delivery.next_due);
  if (next == TimePoint::max()) return std::nullopt;
  return next;
}

bool PartSender::Finished(DeliveryId id) const {
  auto it = deliveries_.find(id);
  return it != deliveries_.end() && it->second.remaining == 0;
}

PullRows PartSender::TakePull(DeliveryId id) {
  auto it = deliveries_.find(id);
  MUSTER_CHECK(it != deliveries_.end() && it->second.remaining == 0 && !it->second.push);
  PullRows rows = std::move(it->second.rows);
  deliveries_.erase(it);
  return rows;
}

}  // namespace muster::sdk
