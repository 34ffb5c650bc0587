// What the members of a simulated group say to each other: parts of sums, copies of the state.
#include <algorithm>

#include "tests/sim/group/sim_member.h"
#include "tests/sim/planted/planted_bug.h"

namespace muster::sim {
namespace {

constexpr milliseconds kPeerTimeout{300};
constexpr milliseconds kPartAgain{150};
/// A peer that says nothing for this long is suspected.
constexpr milliseconds kPeerSilence{1'000};

uint32_t SlotOfName(const std::string& worker) {
  return static_cast<uint32_t>(std::stoul(worker.substr(worker.find('-') + 1)));
}

}  // namespace

void SimMember::Ask(const GroupMember& to, std::function<PeerReply(SimMember*)> serve,
                    Answer done) {
  struct State {
    Answer done;
    bool over = false;
  };
  auto state = std::make_shared<State>(State{std::move(done)});
  const auto finish = [state](const std::optional<PeerReply>& reply) {
    if (std::exchange(state->over, true)) return;
    state->done(reply);
  };
  const Endpoint here = WorkerEnd(slot_), there = WorkerEnd(SlotOfName(to.worker));
  const auto answer = [this, here, there, finish](const PeerReply& reply) {
    env_->network.Send(there, here, [this, finish, reply] {
      env_->scheduler.After({}, process_, [finish, reply] { finish(reply); });
    });
  };
  env_->network.Send(here, there, [this, to, serve = std::move(serve), answer] {
    const auto found = env_->members.find({to.worker, to.incarnation});
    // Nothing listens, or another process, which refuses the hello.
    if (found == env_->members.end() || !found->second->process_->alive) return answer({});
    SimMember* const peer = found->second;
    env_->scheduler.After({}, peer->process_, [peer, serve, answer] { answer(serve(peer)); });
  });
  After(kPeerTimeout, [finish] { finish(std::nullopt); });
}

void SimMember::Contribute() {
  const std::optional<sdk::WantedSum> wanted = core_->WantedSums();
  if (!wanted.has_value()) return;
  const SumKey key{core_->view().lineage, wanted->attempt, wanted->step};
  if (contributed_ == key) return;
  std::set<uint32_t> share;
  for (const MinibatchSpan& span : wanted->share) {
    for (uint32_t i = 0; i < span.count; ++i) share.insert(span.first.value() + i);
  }
  if (wanted->run != run_) {
    gradients_.clear();
    run_ = wanted->run;
  }
  ModelSum part;
  for (const auto& [minibatch, gradient] : gradients_) {
    part.value += gradient;
    part.minibatches.push_back(minibatch);
  }
  if (!std::ranges::equal(part.minibatches, share)) return;
  contributed_ = key;
  part_ = std::move(part);
  parts_[key][name()] = part_;
  const sdk::GroupRing ring = *core_->WantedRing();
  for (const GroupMember& member : ring.members) {
    if (member.worker != name_) SendPart(key, member);
  }
}

/// Sends the part, and again until the sum is there, so that a peer that dies is noticed.
void SimMember::SendPart(const SumKey& key, const GroupMember& to) {
  struct Sending {
    TimePoint heard;
  };
  auto sending = std::make_shared<Sending>(Sending{Now()});
  auto send = std::make_shared<std::function<void()>>();
  *send = [this, key, to, sending, weak = std::weak_ptr(send)] {
    const auto self = weak.lock();
    if (contributed_ != key || ending_) return;
    const auto serve = [key, from = name(), part = part_](SimMember* peer) {
      peer->TakePart(key, from, part);
      peer->Pump();
      return PeerReply{.code = PeerReply::Code::kOk};
    };
    Ask(to, serve, [this, key, to, sending, self](const std::optional<PeerReply>& reply) {
      if (contributed_ != key || ending_) return;
      const bool refused = reply.has_value() && reply->code == PeerReply::Code::kRefused;
      if (reply.has_value()) sending->heard = Now();
      if (refused || Now() - sending->heard > kPeerSilence) {
        if (sum_.has_value() && sum_->first == key) return;
        env_->probes.Hit(Probe::kGroupSuspects);
        core_->OnSumFailed(key.attempt, {to.worker, to.incarnation, "it does not answer"});
        return Pump();
      }
      After(kPartAgain, [self] { (*self)(); });
    });
  };
  (*send)();
}

void SimMember::TakePart(const SumKey& key, const GroupProcess& from, const ModelSum& part) {
  if (!core_.has_value()) return;
  SumKey taken = key;
  if (IsPlanted("group-takes-any-sum")) taken.attempt = core_->attempt();
  parts_[taken].emplace(from, part);
}

void SimMember::FinishSum() {
  const std::optional<sdk::WantedSum> wanted = core_->WantedSums();
  if (!wanted.has_value() || !contributed_.has_value()) return;
  const SumKey key{core_->view().lineage, wanted->attempt, wanted->step};
  if (contributed_ != key) return;
  std::vector<ModelSum> parts;
  const sdk::GroupRing ring = *core_->WantedRing();
  for (const GroupMember& member : ring.members) {
    const auto part = parts_[key].find({member.worker, member.incarnation});
    if (part == parts_[key].end()) return;
    parts.push_back(part->second);
  }
  sum_ = {key, SumOf(parts, env_->knobs.group_exact)};
  env_->Say(*process_, "has the sum of step {}, attempt {}", key.step.value(), key.attempt.value());
  env_->judge.OnSum(name(), key.lineage, key.attempt, *core_->view().work, sum_->second);
  core_->OnSum(key.attempt, key.step, sum_->second.digest());
  After({}, [this] { Pump(); });
}

void SimMember::Prune() {
  const std::optional<StepNumber> after = core_->SumsKeptAfter();
  std::erase_if(kept_, [&](const auto& kept) {
    return !after.has_value() || kept.first.step <= *after ||
           kept.first.lineage != core_->view().lineage;
  });
  std::erase_if(parts_, [&](const auto& parts) { return parts.first.attempt < core_->attempt(); });
}

void SimMember::Transfer() {
  if (copying_.has_value()) return;
  const std::optional<sdk::GroupTransfer> transfer =
      std::exchange(Effects().transfer, std::nullopt);
  if (!transfer.has_value()) {
    if (Effects().again.has_value()) After(milliseconds(50), [this] { Pump(); });
    return;
  }
  copying_ = Copying{.transfer = *transfer};
  const bool copies = transfer->kind == sdk::GroupTransfer::Kind::kCopyState;
  if (copies) memory_ = 0;  // a mixture
  After(Some(milliseconds(10)), [this, copies] { copies ? CopyNext() : FetchNext(); });
}

void SimMember::TransferFailed() {
  copying_.reset();
  core_->OnTransferFailed(Now());
  Pump();
}

void SimMember::CopyNext() {
  const StateSource& source = copying_->transfer.source;
  if (std::exchange(Effects().stop_transfer, false)) return TransferFailed();
  const size_t i = copying_->next;
  if (i == source.stripes.size()) return EndCopy();
  const StateStripe& stripe = source.stripes[i];
  const auto take = [this, stripe, i](const std::optional<PeerReply>& reply) {
    if (!copying_.has_value() || copying_->next != i) return;
    const bool good = reply.has_value() && reply->code == PeerReply::Code::kOk &&
                      CopyCrc(reply->state, stripe.stripe) == stripe.crc;
    if (!good) return TransferFailed();
    copying_->differs |= copying_->state.has_value() && copying_->state != reply->state;
    copying_->state = reply->state;
    copying_->label = reply->label;
    ++copying_->next;
    CopyNext();
  };
  const GroupMember& holder = source.holders[i];
  if (holder.worker.empty()) {
    const auto object = env_->model_store.find(stripe.object);
    std::optional<PeerReply> read;
    if (object != env_->model_store.end()) {
      read =
          PeerReply{.code = PeerReply::Code::kOk, .state = object->second, .label = source.label};
    }
    return After(Some(env_->knobs.disk_max), [take, read] { take(read); });
  }
  const auto serve = [label = source.label, number = stripe.stripe](SimMember* peer) {
    const bool has =
        peer->copy_.has_value() && peer->copy_->label == label && peer->copy_->stripe == number;
    if (!has) return PeerReply{.code = PeerReply::Code::kHasNot};
    return PeerReply{.code = PeerReply::Code::kOk, .state = peer->copy_->state, .label = label};
  };
  Ask(holder, serve, take);
}

void SimMember::EndCopy() {
  const Copying copied = *std::exchange(copying_, std::nullopt);
  memory_ = *copied.state;
  odd_ = false;
  if (copied.differs) env_->oracle.Fail("state", "the stripes of a copy are of different states");
  env_->probes.Hit(copied.transfer.source.holders[0].worker.empty() ? Probe::kGroupCheckpointRead
                                                                    : Probe::kGroupCopy);
  core_->OnStateCopied(copied.label);
  if (core_->state().has_value()) {
    Judge(*core_->state(), "has copied it");
  }
  Pump();
}

void SimMember::FetchNext() {
  const sdk::GroupTransfer& transfer = copying_->transfer;
  if (std::exchange(Effects().stop_transfer, false)) return TransferFailed();
  const size_t i = copying_->next;
  if (i == transfer.holders.size()) {
    const bool unreached = copying_->unreached || transfer.holders.empty();
    if (unreached) return TransferFailed();
    const StepNumber step = transfer.step;
    copying_.reset();
    env_->probes.Hit(Probe::kGroupSumMissing);
    core_->OnSumMissing(step);
    return Pump();
  }
  const StateLabel label{transfer.lineage, transfer.step};
  const auto serve = [label](SimMember* peer) {
    const auto kept = peer->kept_.find(label);
    if (kept == peer->kept_.end()) return PeerReply{.code = PeerReply::Code::kHasNot};
    return PeerReply{.code = PeerReply::Code::kOk, .sum = kept->second};
  };
  Ask(transfer.holders[i], serve, [this, i](const std::optional<PeerReply>& reply) {
    if (!copying_.has_value() || copying_->next != i) return;
    if (reply.has_value() && reply->code == PeerReply::Code::kOk) {
      const StepNumber step = copying_->transfer.step;
      fetched_ = reply->sum;
      copying_.reset();
      core_->OnSumFetched(step);
      return Pump();
    }
    copying_->unreached |= !reply.has_value() || reply->code == PeerReply::Code::kRefused;
    ++copying_->next;
    FetchNext();
  });
}

void SimMember::Capture() {
  if (capturing_) return;
  const std::optional<sdk::CaptureOrder> order = std::exchange(Effects().capture, std::nullopt);
  if (!order.has_value()) return;
  capturing_ = true;
  After(Some(milliseconds(30)), [this, order, before = memory_] {
    capturing_ = false;
    if (before != memory_) {
      env_->oracle.Fail("torn", fmt::format("the state of {} changed while it was copied", name_));
    }
    copy_ = Copy{order->label, order->stripe, memory_};
    env_->probes.Hit(Probe::kGroupCapture);
    Judge(order->label, "holds a copy of it");
    core_->OnCaptured(
        {.stripe = order->stripe, .bytes = 8, .crc = CopyCrc(memory_, order->stripe), .object = ""},
        order->digest ? memory_ : 0);
    if (!order->object_prefix.empty()) Store(*order);
    Pump();
  });
}

void SimMember::Digest() {
  if (!std::exchange(Effects().digest, std::nullopt).has_value()) return;
  After(Some(milliseconds(30)), [this, before = memory_] {
    if (before != memory_) {
      env_->oracle.Fail("torn", fmt::format("the state of {} changed in a digest", name_));
    }
    core_->OnDigest(memory_);
    Pump();
  });
}

void SimMember::Store(const sdk::CaptureOrder& order) {
  const std::string object = order.object_prefix + std::to_string(order.stripe);
  After(Some(env_->knobs.disk_max), [this, order, object, state = memory_] {
    env_->model_store[object] = state;
    core_->OnStored(order.label, object);
    Pump();
  });
}

}  // namespace muster::sim
