#include "tests/sim/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace muster::sim {
namespace {

constexpr uint64_t kKnobStream = 201, kFaultStream = 202, kNetworkStream = 203,
                   kTrainerStream = 204, kForgetStream = 205, kDrainStream = 206,
                   kTopicStream = 207, kGraceStream = 208, kSlices = 209, kCommits = 210,
                   kKeptEpochs = 211, kTwoMasters = 212, kGroupKnobs = 213, kGroupFaults = 214,
                   kGroupTables = 215, kGroupOddApply = 216, kThinned = 217;

nanoseconds Between(Rng* rng, int64_t from_ms, int64_t to_ms) {
  return milliseconds(from_ms +
                      static_cast<int64_t>(rng->Below(static_cast<uint64_t>(to_ms - from_ms) + 1)));
}

Endpoint EndOf(Role role, uint32_t index) {
  if (role == Role::kMaster) return kMasterEnd;
  return role == Role::kServer ? ServerEnd(index) : WorkerEnd(index);
}

/// The role and index of the node with this number.
void SetNode(const Knobs& knobs, uint64_t number, Fault* fault) {
  fault->role = number == 0               ? Role::kMaster
                : number <= knobs.servers ? Role::kServer
                                          : Role::kWorker;
  fault->index = static_cast<uint32_t>(fault->role == Role::kMaster   ? 0
                                       : fault->role == Role::kServer ? number - 1
                                                                      : number - 1 - knobs.servers);
}

FaultKind DrawKind(Rng* rng) {
  const uint64_t draw = rng->Below(100);
  if (draw < 36) return FaultKind::kKill;
  if (draw < 42) return FaultKind::kLose;
  if (draw < 46) return FaultKind::kKillInSync;
  if (draw < 62) return FaultKind::kPause;
  if (draw < 72) return FaultKind::kReplace;
  if (draw < 84) return FaultKind::kCut;
  if (draw < 88) return FaultKind::kSlowDisk;
  if (draw < 91) return FaultKind::kFullDisk;
  if (draw < 93) return FaultKind::kJournalError;
  if (draw < 95) return FaultKind::kHang;
  if (draw < 96) return FaultKind::kDrain;
  return draw < 98 ? FaultKind::kRestart : FaultKind::kPowerLoss;
}

Fault DrawFault(Rng* rng, const Knobs& knobs, nanoseconds end) {
  const uint64_t nodes = 1 + knobs.servers + knobs.workers;
  Fault fault;
  fault.at = milliseconds(200) + nanoseconds(rng->Below(static_cast<uint64_t>(end.count())));
  fault.kind = DrawKind(rng);
  const uint64_t node = rng->Below(nodes);
  // A stream of the same length for every kind.
  const uint64_t other = rng->Below(nodes);
  const uint64_t server = rng->Below(knobs.servers), worker = rng->Below(knobs.workers);
  fault.duration = Between(rng, 50, rng->Below(3) == 0 ? 6'000 : 900);
  SetNode(knobs, node, &fault);
  if ((fault.kind == FaultKind::kReplace && fault.role == Role::kMaster) ||
      fault.kind == FaultKind::kLose) {
    fault.role = Role::kServer;
    fault.index = static_cast<uint32_t>(server);
  }
  if (fault.kind == FaultKind::kHang) {
    fault.role = Role::kWorker;
    fault.index = static_cast<uint32_t>(worker);
  }
  if (fault.kind == FaultKind::kCut) {
    Fault end_of;
    SetNode(knobs, other, &end_of);
    fault.other = EndOf(end_of.role, end_of.index);
  }
  return fault;
}

/// Stops workers, one after the other, each for longer than a lease, and while the first continues
/// with shards that it no longer has, servers start again.
void AddRelay(Rng* rng, const Knobs& knobs, FaultPlan* plan) {
  nanoseconds at = Between(rng, 100, 2'000);
  uint64_t worker = rng->Below(knobs.workers);
  for (uint64_t i = 0, count = 1 + rng->Below(4); i < count; ++i, ++worker) {
    Fault pause;
    pause.kind = FaultKind::kPause;
    pause.at = at;
    pause.role = Role::kWorker;
    pause.index = static_cast<uint32_t>(worker % knobs.workers);
    pause.duration = knobs.leases.duration + Between(rng, 500, 3'500);
    plan->faults.push_back(pause);
    Fault repeated;
    repeated.kind = rng->Below(4) == 0 ? FaultKind::kLose : FaultKind::kKill;
    repeated.role = Role::kServer;
    repeated.index = static_cast<uint32_t>(rng->Below(knobs.servers));
    at += pause.duration;
    repeated.at = at - Between(rng, 0, 400);
    if (rng->Below(2) == 0) plan->faults.push_back(repeated);
    plan->end = std::max(plan->end, at + milliseconds(500));
    at -= Between(rng, 0, 500);
  }
}

/// Uses a separate stream, so that the other seeds do not change.
void AddForgotten(uint64_t seed, const Knobs& knobs, FaultPlan* plan) {
  Rng rng(HashWords(seed, kForgetStream));
  if (rng.Below(knobs.late_news ? 4 : 40) != 0) return;
  Fault fault;
  fault.kind = FaultKind::kForget;
  fault.at = Between(&rng, 300, 2'500);
  fault.role = Role::kWorker;
  fault.index = static_cast<uint32_t>(rng.Below(knobs.workers));
  fault.duration = std::chrono::seconds(12);
  plan->faults.push_back(fault);
  plan->end = std::max(plan->end, fault.at + fault.duration + std::chrono::seconds(4));
}

/// The master starts again while workers stand still, and they continue when others have their
/// shards, or had them. Uses a separate stream.
void AddBusyGrace(uint64_t seed, const Knobs& knobs, FaultPlan* plan) {
  if (!knobs.busy_grace) return;
  Rng rng(HashWords(seed, kGraceStream));
  const auto add = [&](FaultKind kind, nanoseconds at, Role role, uint32_t index,
                       nanoseconds duration) {
    plan->faults.push_back(
        {.at = at, .kind = kind, .role = role, .index = index, .duration = duration});
    plan->end = std::max(plan->end, at + duration + milliseconds(2'000));
  };
  const auto first = static_cast<uint32_t>(rng.Below(knobs.workers));
  const nanoseconds at = Between(&rng, 300, 3'000);
  if (rng.Below(2) == 0) {
    // Its shards are DONE by others when the master ends, and forgotten by the next one.
    const nanoseconds restart = knobs.leases.duration + Between(&rng, 100, 1'500);
    add(FaultKind::kPause, at, Role::kWorker, first, restart + Between(&rng, 500, 4'000));
    add(FaultKind::kKill, at + restart, Role::kMaster, 0, {});
    return;
  }
  // The others get its shards, and then stand still, too, until it is back.
  add(FaultKind::kPause, at, Role::kWorker, first,
      knobs.leases.duration + Between(&rng, 600, 1'400));
  add(FaultKind::kKill, at + Between(&rng, 10, 100), Role::kMaster, 0, {});
  for (uint32_t i = 1; i < knobs.workers; ++i) {
    add(FaultKind::kPause, at + Between(&rng, 250, 600), Role::kWorker, (first + i) % knobs.workers,
        knobs.leases.duration + Between(&rng, 2'000, 6'000));
  }
}

/// Stops every node, one after the other, and lets them go on in another order.
void AddSwizzle(Rng* rng, const Knobs& knobs, nanoseconds end, std::vector<Fault>* faults) {
  std::vector<uint64_t> nodes(1 + knobs.servers + knobs.workers);
  std::iota(nodes.begin(), nodes.end(), 0);
  for (size_t i = nodes.size() - 1; i > 0; --i) std::swap(nodes[i], nodes[rng->Below(i + 1)]);
  nanoseconds at{rng->Below(static_cast<uint64_t>(end.count()))};
  for (const uint64_t node : nodes) {
    Fault fault;
    fault.kind = rng->Below(3) == 0 ? FaultKind::kKill : FaultKind::kPause;
    fault.at = at;
    fault.duration = Between(rng, 300, 3'000);
    SetNode(knobs, node, &fault);
    faults->push_back(fault);
    at += Between(rng, 10, 300);
  }
}

/// Drains single nodes. Uses a separate stream, so that all other faults of a seed stay the same.
void AddDrains(uint64_t seed, const Knobs& knobs, FaultPlan* plan) {
  Rng rng(HashWords(seed, kDrainStream));
  if (rng.Below(5) != 0) return;
  for (uint64_t i = 0, count = 1 + rng.Below(4); i < count; ++i) {
    Fault drain;
    drain.kind = FaultKind::kDrainNode;
    drain.at = milliseconds(200) + nanoseconds(rng.Below(static_cast<uint64_t>(plan->end.count())));
    SetNode(knobs, 1 + rng.Below(knobs.servers + knobs.workers), &drain);
    plan->faults.push_back(drain);
  }
}

/// The topic's brokers go away. Uses a separate stream, too.
void AddBrokerFaults(uint64_t seed, const Knobs& knobs, FaultPlan* plan) {
  Rng rng(HashWords(seed, kTopicStream, 1));
  if (!knobs.stream) return;
  for (uint64_t i = 0, count = rng.Below(3); i < count; ++i) {
    Fault away;
    away.kind = FaultKind::kBrokers;
    away.at = nanoseconds(rng.Below(static_cast<uint64_t>(plan->end.count())));
    away.duration = Between(&rng, 100, 2'000);
    plan->faults.push_back(away);
  }
}

/// The master's machine is lost for some, at any time or when a run begins. Uses a separate stream.
void AddTwoMasters(uint64_t seed, FaultPlan* plan) {
  Rng rng(HashWords(seed, kTwoMasters));
  if (rng.Below(5) != 0) return;
  for (uint64_t i = 0, count = 1 + rng.Below(3); i < count; ++i) {
    Fault split;
    split.kind = FaultKind::kTwoMasters;
    split.role = Role::kMaster;
    split.at = nanoseconds(rng.Below(static_cast<uint64_t>(plan->end.count())));
    split.duration = Between(&rng, 100, 4'000);
    split.other = static_cast<uint32_t>(rng.Next());
    split.restarted = rng.Below(3) == 0;
    split.pause = rng.Below(2) == 0 ? nanoseconds(0) : Between(&rng, 1, 2'000);
    if (rng.Below(4) == 0) {
      // Everything starts again just before.
      Fault restart;
      restart.kind = FaultKind::kRestart;
      restart.at = split.at;
      split.at += milliseconds(100) + nanoseconds(rng.Below(20'000'000));
      plan->faults.push_back(restart);
    }
    plan->faults.push_back(split);
    plan->end = std::max(plan->end, split.at + split.duration);
  }
}

/// The faults of a network and of trainers, which every job has.
void DrawAround(uint64_t seed, FaultPlan* plan) {
  Rng network(HashWords(seed, kNetworkStream));
  if (network.Below(5) != 0) {
    plan->network.lost = network.Below(100);
    plan->network.doubled = network.Below(100);
    plan->network.late = network.Below(60);
    plan->network.delay_max = Between(&network, 1, network.Below(4) == 0 ? 120 : 15);
    plan->network.late_max = Between(&network, 100, 4'000);
  }
  Rng trainers(HashWords(seed, kTrainerStream));
  if (trainers.Below(3) == 0) {
    plan->trainers.fails = trainers.Below(60);
    plan->trainers.crashes = trainers.Below(30);
    plan->trainers.hands_back = trainers.Below(30);
    plan->trainers.abandons = trainers.Below(10);
  }
}

void DrawGroupKnobs(uint64_t seed, Knobs* knobs) {
  Rng rng(HashWords(seed, kGroupKnobs));
  knobs->workers = static_cast<uint32_t>(2 + rng.Below(4));
  knobs->stream = knobs->losses = knobs->keeps_epochs = false;
  if (Rng(HashWords(seed, kGroupTables)).Below(2) == 0) {
    knobs->servers = 0;
    knobs->late_news = knobs->slices = false;
  }
  knobs->compute_max = rng.Below(4) == 0 ? Between(&rng, 150, 400) : Between(&rng, 5, 80);
  knobs->group_exact = rng.Below(2) == 0;
  knobs->group_same_start = rng.Below(2) == 0;
  GroupOptions group;
  group.members_min = static_cast<uint32_t>(1 + rng.Below(2));
  group.members_max = rng.Below(3) == 0 ? std::max(2u, knobs->workers - 1) : knobs->workers;
  group.silence_limit = milliseconds(rng.Below(2) == 0 ? 700 : 1'500);
  group.join_wait = milliseconds(100 + rng.Below(300));
  group.rollback_wait = milliseconds(300 + rng.Below(1'200));
  group.heartbeat_interval = milliseconds(50 + rng.Below(150));
  group.checkpoint_interval = milliseconds(rng.Below(3) == 0 ? 3'000 : 100 + rng.Below(700));
  group.inquiry_wait = milliseconds(200);
  group.eviction = milliseconds(500);
  group.kept_sums_max = static_cast<uint32_t>(1 + rng.Below(8));
  // Uses a separate draw, so that the other seeds do not change.
  if (Rng odd(HashWords(seed, kGroupOddApply)); odd.Below(8) == 0) {
    knobs->workers = group.members_max = std::max(3u, knobs->workers);
    group.members_min = 3;
    knobs->group_odd_apply = {static_cast<uint32_t>(odd.Below(knobs->workers)), 1 + odd.Below(15)};
  }
  knobs->group = group;
}

FaultKind DrawGroupKind(Rng* rng) {
  const uint64_t draw = rng->Below(100);
  if (draw < 40) return FaultKind::kKill;
  if (draw < 46) return FaultKind::kKillInSync;
  if (draw < 64) return FaultKind::kPause;
  if (draw < 72) return FaultKind::kReplace;
  if (draw < 84) return FaultKind::kCut;
  if (draw < 88) return FaultKind::kSlowDisk;
  if (draw < 90) return FaultKind::kJournalError;
  if (draw < 94) return FaultKind::kDrainNode;
  if (draw < 95) return FaultKind::kDrain;
  return draw < 98 ? FaultKind::kRestart : FaultKind::kPowerLoss;
}

/// All members die within a moment, so that steps are lost, unless they are stored.
void AddLossOfAll(Rng* rng, const Knobs& knobs, FaultPlan* plan) {
  const nanoseconds at =
      milliseconds(300) + nanoseconds(rng->Below(static_cast<uint64_t>(plan->end.count())));
  const uint64_t spared = rng->Below(2 * knobs.workers);
  for (uint32_t i = 0; i < knobs.workers; ++i) {
    Fault kill;
    kill.at = at + Between(rng, 0, 60);
    kill.index = i;
    if (i != spared) plan->faults.push_back(kill);
  }
}

/// Servers die, or lose a partition. Uses a separate stream.
void AddServerFaults(uint64_t seed, const Knobs& knobs, FaultPlan* plan) {
  if (knobs.servers == 0) return;
  Rng rng(HashWords(seed, kGroupTables, 1));
  for (uint64_t i = 0, count = rng.Below(6); i < count; ++i) {
    Fault fault;
    fault.kind = rng.Below(3) == 0 ? FaultKind::kLose : FaultKind::kKill;
    fault.at = milliseconds(200) + nanoseconds(rng.Below(static_cast<uint64_t>(plan->end.count())));
    fault.role = Role::kServer;
    fault.index = static_cast<uint32_t>(rng.Below(knobs.servers));
    plan->faults.push_back(fault);
  }
  if (rng.Below(4) == 0) plan->torn_reads = rng.Below(300);
}

FaultPlan DrawFaultsOfGroup(uint64_t seed, const Knobs& knobs) {
  Rng rng(HashWords(seed, kGroupFaults));
  FaultPlan plan;
  plan.end = Between(&rng, 1'500, 6'000);
  if (knobs.group_odd_apply.has_value()) return plan;
  const uint64_t mood = rng.Below(8);
  const uint64_t count = mood == 0  ? rng.Below(3)
                         : mood < 6 ? 4 + rng.Below(12)
                                    : 16 + rng.Below(20);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.at = milliseconds(200) + nanoseconds(rng.Below(static_cast<uint64_t>(plan.end.count())));
    fault.kind = DrawGroupKind(&rng);
    const uint64_t others = knobs.servers + knobs.workers;
    const uint64_t node = rng.Below(1 + others), other = rng.Below(1 + others);
    const uint64_t started = 1 + rng.Below(others);
    fault.duration = Between(&rng, 50, rng.Below(3) == 0 ? 6'000 : 900);
    const bool no_master = fault.kind == FaultKind::kReplace || fault.kind == FaultKind::kDrainNode;
    SetNode(knobs, no_master ? started : node, &fault);
    Fault end_of;
    SetNode(knobs, other, &end_of);
    fault.other = EndOf(end_of.role, end_of.index);
    plan.faults.push_back(fault);
  }
  if (rng.Below(3) == 0) AddLossOfAll(&rng, knobs, &plan);
  if (rng.Below(8) == 0) AddSwizzle(&rng, knobs, plan.end, &plan.faults);
  AddServerFaults(seed, knobs, &plan);
  AddTwoMasters(seed, &plan);
  std::ranges::stable_sort(plan.faults, {}, &Fault::at);
  DrawAround(seed, &plan);
  return plan;
}

std::string_view NameOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "kill";
    case FaultKind::kPause:
      return "pause";
    case FaultKind::kReplace:
      return "false death verdict on";
    case FaultKind::kLose:
      return "a partition lost by";
    case FaultKind::kCut:
      return "cut from";
    case FaultKind::kSlowDisk:
      return "slow disk";
    case FaultKind::kFullDisk:
      return "full disk";
    case FaultKind::kJournalError:
      return "journal error";
    case FaultKind::kKillInSync:
      return "kill of the master in a sync";
    case FaultKind::kHang:
      return "hanging trainer in";
    case FaultKind::kDrain:
      return "drain";
    case FaultKind::kRestart:
      return "kill of everything";
    case FaultKind::kPowerLoss:
      return "power loss";
    case FaultKind::kForget:
      return "forgotten while it stands still:";
    case FaultKind::kDrainNode:
      return "drain of";
    case FaultKind::kBrokers:
      return "brokers away";
    case FaultKind::kTwoMasters:
      return "a second master";
  }
  return "?";
}

}  // namespace

std::string ToString(const Fault& fault) {
  const std::string_view role = fault.role == Role::kMaster   ? "master"
                                : fault.role == Role::kServer ? "ps"
                                                              : "worker";
  std::string text = fmt::format("{} ms: {}", fault.at / milliseconds(1), NameOf(fault.kind));
  if (fault.kind <= FaultKind::kCut || fault.kind == FaultKind::kHang ||
      fault.kind == FaultKind::kForget || fault.kind == FaultKind::kDrainNode) {
    text += fmt::format(" {}-{}", role, fault.index);
  }
  if (fault.kind == FaultKind::kCut) text += fmt::format(" to end {}", fault.other);
  if (fault.kind == FaultKind::kPause || fault.kind == FaultKind::kCut ||
      fault.kind == FaultKind::kSlowDisk || fault.kind == FaultKind::kFullDisk ||
      fault.kind == FaultKind::kBrokers || fault.kind == FaultKind::kTwoMasters) {
    text += fmt::format(" for {} ms", fault.duration / milliseconds(1));
  }
  return text;
}

Knobs DrawKnobs(uint64_t seed, Weakening weakening) {
  Rng rng(HashWords(seed, kKnobStream));
  Knobs knobs;
  knobs.partitions = static_cast<uint32_t>(4 + rng.Below(3));
  knobs.servers = static_cast<uint32_t>(2 + rng.Below(2));
  knobs.lanes = static_cast<uint32_t>(1 + rng.Below(2));
  knobs.loops = static_cast<uint32_t>(1 + rng.Below(2));
  knobs.shards_ahead = static_cast<uint32_t>(1 + rng.Below(2));
  knobs.unacknowledged_max = static_cast<uint32_t>(rng.Below(5));
  knobs.prefetch = static_cast<uint32_t>(rng.Below(3));
  knobs.compute_max = rng.Below(4) == 0 ? Between(&rng, 600, 1'500) : Between(&rng, 50, 500);
  knobs.sync_max = rng.Below(4) == 0 ? Between(&rng, 20, 80) : Between(&rng, 1, 8);
  knobs.disk_max = rng.Below(4) == 0 ? Between(&rng, 200, 800) : Between(&rng, 5, 60);
  knobs.wire = rng.Below(16) == 0;
  knobs.greets = rng.Below(4) != 0;
  knobs.patience = rng.Below(2) == 0 ? 3 : 40;
  knobs.late_news = rng.Below(4) == 0;
  knobs.late_news |= weakening == Weakening::kLateNews;
  knobs.busy_grace = weakening == Weakening::kBusyGrace;
  // Uses a separate draw, so that the other seeds do not change.
  knobs.stream = Rng(HashWords(seed, kTopicStream)).Below(4) == 0;
  knobs.slices = Rng(HashWords(seed, kSlices)).Below(2) == 0;
  if (Rng rng_of_commits(HashWords(seed, kCommits)); rng_of_commits.Below(2) == 0) {
    knobs.commits_at_once = 1 + rng_of_commits.Below(3);
  }
  knobs.keeps_epochs = !knobs.stream && Rng(HashWords(seed, kKeptEpochs)).Below(3) == 0;
  if (Rng(HashWords(seed, kThinned)).Below(2) == 0) knobs.epochs_known = 1;
  knobs.losses = knobs.stream && Rng(HashWords(seed, kTopicStream, 2)).Below(3) == 0;
  if (seed % kGroupEvery == 0) DrawGroupKnobs(seed, &knobs);
  knobs.snapshot_interval = milliseconds(100 + rng.Below(600));
  knobs.snapshot_timeout = milliseconds(600 + rng.Below(1'000));
  knobs.leases.duration = milliseconds(rng.Below(2) == 0 ? 600 : 1'500);
  knobs.leases.max_age = milliseconds(6'000);
  knobs.leases.grace_period = milliseconds(knobs.busy_grace ? 3'000 : 600);
  knobs.leases.heartbeat_interval = milliseconds(200);
  knobs.server_times.timeout = milliseconds(1'500);
  knobs.server_times.heartbeat_interval = milliseconds(100);
  return knobs;
}

FaultPlan DrawFaults(uint64_t seed, const Knobs& knobs) {
  if (knobs.group.has_value()) return DrawFaultsOfGroup(seed, knobs);
  Rng rng(HashWords(seed, kFaultStream));
  FaultPlan plan;
  plan.end = Between(&rng, 1'500, 6'000);
  const uint64_t mood = rng.Below(8);  // calm, normal or hostile
  const uint64_t count = mood == 0  ? rng.Below(3)
                         : mood < 6 ? 4 + rng.Below(12)
                                    : 16 + rng.Below(20);
  for (uint64_t i = 0; i < count; ++i) plan.faults.push_back(DrawFault(&rng, knobs, plan.end));
  if (rng.Below(8) == 0) AddSwizzle(&rng, knobs, plan.end, &plan.faults);
  if (knobs.compute_max > milliseconds(500)) AddRelay(&rng, knobs, &plan);
  AddForgotten(seed, knobs, &plan);
  AddDrains(seed, knobs, &plan);
  AddBrokerFaults(seed, knobs, &plan);
  AddBusyGrace(seed, knobs, &plan);
  AddTwoMasters(seed, &plan);
  std::ranges::stable_sort(plan.faults, {}, &Fault::at);

  DrawAround(seed, &plan);
  if (rng.Below(4) == 0) plan.torn_reads = rng.Below(300);
  return plan;
}

void TakeOut(std::string_view part, FaultPlan* plan) {
  if (part == "network") plan->network = {};
  if (part == "trainers") plan->trainers = {};
  if (part == "torn reads") plan->torn_reads = 0;
}

}  // namespace muster::sim
