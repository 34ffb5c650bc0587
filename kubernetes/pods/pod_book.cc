#include "kubernetes/pods/pod_book.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "host/node_name.h"

namespace muster::kubernetes {
namespace {

/// A deletion without a grace period would not wait for the kubelet, so the process might live on.
constexpr std::chrono::seconds kGraceMin{1};
/// The smallest part of a CPU that a pod can request.
constexpr double kCpuStep = 0.001;

/// True if a container with the limits `have` does not have one of `want`. A present limit cannot
/// be removed in place.
bool Differ(const Resources& have, const Resources& want) {
  const bool cpus = want.cpus > 0 && std::abs(have.cpus - want.cpus) >= kCpuStep / 2;
  return cpus || (want.memory_bytes > 0 && have.memory_bytes != want.memory_bytes);
}

NodeExited ExitBeforePod(const std::string& node) {
  return {.node = node, .pid = 0, .exit = {.signal = SIGTERM}};
}

}  // namespace

// Orders.

std::vector<FoundNode> PodBook::Find(const std::vector<PodFacts>& pods, TimePoint now) {
  std::vector<FoundNode> found;
  for (const PodFacts& seen : pods) {
    const std::optional<PodFacts> facts = AsOurs(seen);
    if (!facts) continue;
    NodePods* const node = Note(*facts, now);
    node->last_start = std::max(node->last_start, facts->start);
    found.push_back({facts->node, facts->start, /*alive=*/true});
  }
  AdvanceLook(now);
  for (auto& [name, node] : nodes_) {
    const PodFacts& newest = node.pods.rbegin()->second.facts;
    const NodeRole role = WorkerNumber(name) ? NodeRole::kWorker : NodeRole::kServer;
    node.life =
        Life{.order = {.node = name, .role = role, .start = newest.start, .limits = newest.limits},
             .name = newest.name,
             .stage = Life::Stage::kThere,
             .uid = newest.uid};
  }
  return found;
}

void PodBook::Discard(const FoundNode& found, TimePoint now) {
  NodePods& node = nodes_[found.node];
  node.name = found.node;
  node.last_start = std::max(node.last_start, found.start);
  if (node.life && node.life->order.start == found.start) {
    node.life.reset();
    std::erase_if(reports_, [&found](const HostReport& report) {
      return std::visit([&](const auto& told) { return told.node == found.node; }, report);
    });
  }
  const auto pod = node.pods.find(found.start);
  if (pod == node.pods.end()) return;
  const bool newest = pod->first == node.pods.rbegin()->first;
  if (!pod->second.ended() || !newest) WantDeletion(&pod->second, kGraceMin);
  Advance(now);
}

NodeExited PodBook::DeathOf(const std::string& node, uint32_t start) const {
  const auto known = nodes_.find(node);
  if (known != nodes_.end()) {
    const auto pod = known->second.pods.find(start);
    if (pod != known->second.pods.end()) return ExitOfPod(pod->second.facts, /*ordered=*/false);
  }
  return ExitOfVanished(node, "its pod went while no scaler was there to see why");
}

void PodBook::Start(const StartNode& order, TimePoint now) {
  MUSTER_CHECK_MSG(!Has(order.node), order.node);
  NodePods& node = nodes_[order.node];
  node.name = order.node;
  node.last_start = std::max(node.last_start, order.start);
  node.life = Life{.order = order,
                   .name = PodName(options_.run, order.node, order.start),
                   .told_wait = NodeWait::kNone};
  Advance(now);
}

void PodBook::Stop(const std::string& node, std::chrono::milliseconds timeout, TimePoint now) {
  Life* const life = LifeOf(node);
  if (life == nullptr || life->stage == Life::Stage::kOver) return;
  const auto grace = std::max(kGraceMin, std::chrono::ceil<std::chrono::seconds>(timeout));
  life->ending = std::min(life->ending.value_or(grace), grace);
  Advance(now);
}

void PodBook::Kill(const std::string& node, TimePoint now) {
  Stop(node, kGraceMin, now);
}

absl::Status PodBook::SetLimits(const std::string& node, const Resources& limits, TimePoint now) {
  Life* const life = LifeOf(node);
  if (life == nullptr || life->stage == Life::Stage::kOver) {
    return absl::NotFoundError(fmt::format("{} is not running", node));
  }
  if (life->refused == limits) {
    return absl::FailedPreconditionError(
        fmt::format("{}: its pod was refused limits of {} before; its next start has them", node,
                    ToString(limits)));
  }
  const bool differs = Differ(life->order.limits, limits);
  life->order.limits = limits;
  if (!differs) return absl::OkStatus();
  life->resize = limits;
  life->resize_retry = {};
  Advance(now);
  return absl::OkStatus();
}

void PodBook::Release(const std::string& node, TimePoint now) {
  const Life* const life = LifeOf(node);
  if (life == nullptr || life->stage != Life::Stage::kOver) return;
  nodes_.at(node).life.reset();
  Advance(now);
}

bool PodBook::Has(const std::string& node) const {
  return LifeOf(node) != nullptr;
}

bool PodBook::IsRunning(const std::string& node) const {
  const Life* const life = LifeOf(node);
  return life != nullptr && life->told_start && life->stage == Life::Stage::kThere;
}

void PodBook::EndRun(TimePoint now) {
  ended_ = true;
  Advance(now);
}

// Observations.

std::optional<PodFacts> PodBook::AsOurs(const PodFacts& facts) {
  PodFacts ours = facts;
  if (const Pod* const known = FindPod(facts.uid)) {
    ours.node = known->facts.node;
    ours.start = known->facts.start;
  } else if (facts.run != options_.run.run || !IsNamedAsNode(facts, options_.run.job)) {
    return std::nullopt;
  }
  unowned_.erase(facts.uid);
  if (facts.owned || orphaned_) return ours;
  unowned_.emplace(facts.uid, ours);
  if (FindPod(facts.uid) == nullptr) return std::nullopt;
  return ours;
}

Pod* PodBook::FindPod(const std::string& uid) {
  for (auto& [name, node] : nodes_) {
    for (auto& [start, pod] : node.pods) {
      if (pod.facts.uid == uid) return &pod;
    }
  }
  return nullptr;
}

void PodBook::Seen(const PodFacts& seen, TimePoint now) {
  if (const std::optional<PodFacts> facts = AsOurs(seen)) {
    NodePods* const node = Note(*facts, now);
    if (node->life && node->life->order.start == facts->start &&
        node->life->stage < Life::Stage::kThere) {
      node->life->stage = Life::Stage::kThere;
      node->life->uid = facts->uid;
      node->life->call = 0;
    }
  }
  Advance(now);
}

NodePods* PodBook::Note(const PodFacts& facts, TimePoint now) {
  NodePods& node = nodes_[facts.node];
  node.name = facts.node;
  Pod& pod = node.pods[facts.start];
  if (pod.facts.uid != facts.uid) {
    // The former pod of this name is gone, though no event has reported that.
    if (node.life && node.life->stage == Life::Stage::kThere && node.life->uid == pod.facts.uid) {
      Exit(&node, &*node.life, ExitOfPod(pod.facts, node.life->ending.has_value()));
    }
    pod = {.facts = {}, .seen_at = now};
  }
  const PodFacts before = std::exchange(pod.facts, facts);
  KeepKnown(before, &pod.facts);
  if (facts.being_deleted && !pod.leaving_since) pod.leaving_since = now;
  // Its machine will never confirm its end. Leases and epochs protect the job against a process
  // that still runs there.
  pod.lost |= facts.being_deleted && pod.facts.disruption == Disruption::kNodeLost;
  return &node;
}

void PodBook::Gone(const PodFacts& last, TimePoint now) {
  unowned_.erase(last.uid);
  const Pod* const pod = FindPod(last.uid);
  if (pod == nullptr) return;
  // The last observation may contain more than the deletion event.
  PodFacts facts = last;
  facts.node = pod->facts.node;
  facts.start = pod->facts.start;
  KeepKnown(pod->facts, &facts);
  NodePods& node = nodes_.at(facts.node);
  node.pods.erase(facts.start);
  if (node.life && node.life->stage == Life::Stage::kThere && node.life->uid == last.uid) {
    Exit(&node, &*node.life, ExitOfPod(facts, node.life->ending.has_value()));
  }
  Advance(now);
}

void PodBook::OnTime(TimePoint now) {
  Advance(now);
}

// Consequences.

Life* PodBook::LifeOf(const std::string& node) {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || !found->second.life ? nullptr : &*found->second.life;
}

const Life* PodBook::LifeOf(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || !found->second.life ? nullptr : &*found->second.life;
}

void PodBook::AdvanceLook(TimePoint now) {
  if (unowned_.empty() || orphaned_ || look_call_ != 0 || now < look_at_) return;
  look_call_ = Call({.kind = PodCall::Kind::kLookForJob}, "", 0);
}

void PodBook::Advance(TimePoint now) {
  AdvanceLook(now);
  for (auto& [name, node] : nodes_) {
    if (node.life) AdvanceStart(&node, &*node.life, now);
    if (node.life && node.life->stage == Life::Stage::kThere) Interpret(&node, &*node.life, now);
    for (auto& [start, pod] : node.pods) AdvancePod(node, &pod, now);
  }
}

void PodBook::AdvanceStart(NodePods* node, Life* life, TimePoint now) {
  if (life->stage == Life::Stage::kToCreate) {
    if (life->ending) return Exit(node, life, ExitBeforePod(node->name));
    if (const auto pod = node->pods.find(life->order.start); pod != node->pods.end()) {
      // A scaler that died had asked for this pod, and its call was carried out late.
      life->stage = Life::Stage::kThere;
      life->uid = pod->second.facts.uid;
      return;
    }
    if (ended_ || now < life->retry.at || !IsPlaceFree(node, *life)) return;
    life->stage = Life::Stage::kCreating;
    life->resize.reset();  // the pod is made with these limits
    life->call = Call({.kind = PodCall::Kind::kCreate, .name = life->name, .start = life->order},
                      node->name, life->order.start);
  } else if (life->stage == Life::Stage::kToLook && now >= life->retry.at) {
    life->stage = Life::Stage::kLooking;
    life->call =
        Call({.kind = PodCall::Kind::kGet, .name = life->name}, node->name, life->order.start);
  }
}

bool PodBook::IsPlaceFree(NodePods* node, const Life& life) {
  bool free = true;
  for (auto& [start, pod] : node->pods) {
    if (start == life.order.start || !pod.lives()) continue;
    WantDeletion(&pod, kGraceMin);
    free = false;
  }
  return free;
}

void PodBook::Interpret(NodePods* node, Life* life, TimePoint now) {
  Pod& pod = node->pods.at(life->order.start);
  const PodFacts& facts = pod.facts;
  if (facts.stage == PodFacts::Stage::kWaiting) {
    TellHeld(life, facts.wait, facts.wait_reason);
  } else if (facts.ran && !life->told_start) {
    life->told_start = true;
    life->told_wait = NodeWait::kNone;
    reports_.push_back(NodeStarted{node->name, kPodProcess});
  }
  if (pod.lost || pod.ended()) {
    return Exit(node, life, ExitOfPod(facts, life->ending.has_value()));
  }
  if (life->ending) WantDeletion(&pod, *life->ending);
  AdvanceResize(life, facts, now);
}

void PodBook::TellResize(Life* life, const PodFacts& facts) {
  // The watch may still show the state before the answer.
  if (!life->resizing || Differ(facts.limits, *life->resizing)) return;
  const auto tell = [&](ResizeAnswer answer) {
    reports_.push_back(NodeResized{.node = life->order.node,
                                   .limits = *life->resizing,
                                   .answer = answer,
                                   .reason = facts.resize_text});
  };
  switch (facts.resize) {
    case PodResize::kInfeasible:
      tell(ResizeAnswer::kRefused);
      life->refused = std::exchange(life->resizing, std::nullopt);
      break;
    case PodResize::kDeferred:
      if (!std::exchange(life->told_deferred, true)) tell(ResizeAnswer::kDeferred);
      break;
    case PodResize::kInProgress:
      break;
    case PodResize::kNone:
      if (facts.present_limits && Differ(*facts.present_limits, *life->resizing)) break;
      tell(ResizeAnswer::kDone);
      life->resizing.reset();
      break;
  }
}

void PodBook::AdvanceResize(Life* life, const PodFacts& facts, TimePoint now) {
  TellResize(life, facts);
  if (!life->resize || life->resize_call != 0 || now < life->resize_retry.at) return;
  life->resize_call = Call({.kind = PodCall::Kind::kResize,
                            .name = life->name,
                            .uid = life->uid,
                            .container = facts.container,
                            .limits = *life->resize,
                            .requests = RequestsFor(*life->resize, facts.requests, facts.limits)},
                           life->order.node, life->order.start);
  life->resize.reset();
}

void PodBook::Exit(NodePods* node, Life* life, NodeExited exit) {
  MUSTER_CHECK_MSG(life->stage != Life::Stage::kOver, node->name);
  life->stage = Life::Stage::kOver;
  life->call = 0;
  if (exit.pid != 0 && !std::exchange(life->told_start, true)) {
    reports_.push_back(NodeStarted{node->name, kPodProcess});
  }
  if (life->told_start) {
    exit.pid = kPodProcess;
    exit.not_started = false;
  }
  reports_.push_back(std::move(exit));
  // The newest dead pod is kept for its log.
  for (auto& [start, pod] : node->pods) {
    if (start < life->order.start) WantDeletion(&pod, kGraceMin);
  }
}

void PodBook::TellHeld(Life* life, NodeWait wait, const std::string& reason) {
  if (life->told_wait == wait && life->told_reason == reason) return;
  life->told_wait = wait;
  life->told_reason = reason;
  reports_.push_back(NodeHeld{.node = life->order.node, .wait = wait, .reason = reason});
}

bool PodBook::IsClaimed(const NodePods& node, const Pod& pod) {
  return node.life && node.life->order.start == pod.facts.start &&
         node.life->stage != Life::Stage::kOver;
}

void PodBook::AdvancePod(const NodePods& node, Pod* pod, TimePoint now) {
  const PodFacts& facts = pod->facts;
  if (!IsClaimed(node, *pod) && pod->lives()) {
    // A pod is unclaimed if its exit was reported, if a later start was ordered, or if a scaler
    // that died has made it.
    const bool past = facts.start <= node.last_start;
    if (past || now - pod->seen_at >= options_.unclaimed_max) WantDeletion(pod, kGraceMin);
  }
  if (ended_) WantDeletion(pod, kGraceMin);
  // Whoever deleted the pod: if it does not go in time, it is lost with its machine, and is
  // forgotten.
  if (pod->leaving_since && now - *pod->leaving_since >= facts.grace + options_.confirm_max) {
    WantDeletion(pod, std::chrono::seconds(0));
  }
  const bool waits = pod->deletion_taken || pod->deletion_call != 0 || now < pod->deletion.at;
  if (!pod->grace || waits) return;
  pod->deletion_call = Call(
      {.kind = PodCall::Kind::kDelete, .name = facts.name, .uid = facts.uid, .grace = *pod->grace},
      node.name, facts.start);
}

void PodBook::WantDeletion(Pod* pod, std::chrono::seconds grace) {
  if (pod->grace && *pod->grace <= grace) return;
  pod->grace = grace;
  pod->deletion_taken = false;
  pod->deletion = {};
}

uint64_t PodBook::Call(PodCall call, const std::string& node, uint32_t start) {
  call.id = ++last_call_;
  in_flight_[call.id] = {
      .node = node, .start = start, .kind = call.kind, .grace = call.grace, .limits = call.limits};
  calls_.push_back(std::move(call));
  return last_call_;
}

// Results.

std::vector<PodCall> PodBook::TakeCalls() {
  return std::exchange(calls_, {});
}

std::vector<HostReport> PodBook::TakeReports() {
  return std::exchange(reports_, {});
}

std::vector<std::string> PodBook::TakeNotes() {
  return std::exchange(notes_, {});
}

bool PodBook::IsClear() const {
  if (!in_flight_.empty()) return false;
  return std::ranges::all_of(nodes_, [](const auto& node) {
    return std::ranges::all_of(node.second.pods,
                               [](const auto& pod) { return pod.second.deletion_taken; });
  });
}

std::vector<PodFacts> PodBook::PodsOfNode(const std::string& node) const {
  std::vector<PodFacts> pods;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return pods;
  for (auto pod = found->second.pods.rbegin(); pod != found->second.pods.rend(); ++pod) {
    pods.push_back(pod->second.facts);
  }
  return pods;
}

const PodFacts* PodBook::PodOf(const std::string& node) const {
  if (!IsRunning(node)) return nullptr;
  const NodePods& found = nodes_.at(node);
  return &found.pods.at(found.life->order.start).facts;
}

}  // namespace muster::kubernetes
