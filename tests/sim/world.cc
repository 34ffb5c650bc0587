#include "tests/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tests/sim/forgotten_worker.h"
#include "tests/sim/planted/planted_bug.h"
#include "tests/sim/supervisor.h"

namespace muster::sim {
namespace {

/// With all faults over, the job must end within this.
constexpr std::chrono::seconds kEndsWithin{180};
/// Late messages arrive, partitions are served, and what may be forgotten is.
constexpr milliseconds kSettles{1'500};
constexpr milliseconds kSettlesWithin{25'000};
constexpr uint64_t kStepsMax = 2'000'000;

class World {
 public:
  explicit World(const RunOptions& options)
      : knobs_(DrawKnobs(options.seed, weakening)),
        plan_(PlanOf(options, knobs_)),
        env_(options.seed, knobs_, options.print),
        supervisor_(&env_, plan_.trainers) {
    env_.network.SetFaults(plan_.network);
    env_.disk.set_torn_reads(plan_.torn_reads);
  }

  RunResult Run() {
    began_ = env_.scheduler.now();
    supervisor_.StartRun();
    for (const Fault& fault : plan_.faults) {
      env_.scheduler.After(fault.at, nullptr, [this, fault] {
        if (env_.faulty) Strike(fault);
      });
    }
    env_.scheduler.After(plan_.end, nullptr, [this] { Heal(); });
    if (knobs_.stream) GrowTopic();
    while (!env_.oracle.failed() && !Over() && env_.scheduler.Step()) {
    }
    if (!env_.oracle.failed()) CheckEnd();
    return Result();
  }

 private:
  static FaultPlan PlanOf(const RunOptions& options, const Knobs& knobs) {
    FaultPlan plan = DrawFaults(options.seed, knobs);
    for (const std::string& part : options.without_parts) TakeOut(part, &plan);
    // In descending order, so that the numbers stay right.
    for (auto number = options.without.rbegin(); number != options.without.rend(); ++number) {
      if (*number >= plan.faults.size()) continue;
      plan.faults.erase(plan.faults.begin() + static_cast<std::ptrdiff_t>(*number));
    }
    return plan;
  }

  void Strike(const Fault& fault) {
    env_.trace.Add(env_.scheduler.now(), "fault", "{}", ToString(fault));
    const TimePoint until = env_.scheduler.now() + fault.duration;
    switch (fault.kind) {
      case FaultKind::kKill:
        supervisor_.Kill(fault.role, fault.index);
        return;
      case FaultKind::kPause:
        supervisor_.Pause(fault.role, fault.index, fault.duration);
        return;
      case FaultKind::kReplace:
        supervisor_.Replace(fault.role, fault.index);
        return;
      case FaultKind::kLose:
        supervisor_.LosePartition(fault.index);
        return;
      case FaultKind::kCut:
        env_.network.Cut(fault.role == Role::kMaster   ? kMasterEnd
                         : fault.role == Role::kServer ? ServerEnd(fault.index)
                                                       : WorkerEnd(fault.index),
                         fault.other, until);
        return;
      case FaultKind::kSlowDisk:
        env_.journal.set_sync_max(milliseconds(900));
        env_.disk.set_delay_max(milliseconds(2'000));
        env_.scheduler.At(until, nullptr, [this] { QuickDisk(); });
        return;
      case FaultKind::kFullDisk:
        env_.disk.set_full(true);
        env_.scheduler.At(until, nullptr, [this] { env_.disk.set_full(false); });
        return;
      case FaultKind::kJournalError:
        env_.journal.FailNext();
        return;
      case FaultKind::kKillInSync:
        env_.journal.AimAtNext([this] { supervisor_.Kill(Role::kMaster, 0); });
        return;
      case FaultKind::kHang:
        if (!IsPlanted("ageless")) supervisor_.HangTrainer(fault.index);
        return;
      case FaultKind::kDrain:
        supervisor_.Drain();
        return;
      case FaultKind::kRestart:
        supervisor_.RestartRun(Supervisor::Power::kStays);
        return;
      case FaultKind::kPowerLoss:
        supervisor_.RestartRun(Supervisor::Power::kLost);
        return;
      case FaultKind::kForget:
        forgotten_ = std::make_unique<ForgottenWorker>(&env_, &supervisor_, env_.Stream(8));
        forgotten_->Begin(fault.index, fault.duration);
        return;
      case FaultKind::kDrainNode:
        supervisor_.DrainNode(fault.role, fault.index);
        return;
      case FaultKind::kTwoMasters:
        return SplitMaster(fault);
      case FaultKind::kBrokers:
        env_.topic.set_reachable(false);
        env_.scheduler.At(until, nullptr, [this] { env_.topic.set_reachable(true); });
        return;
    }
  }

  void SplitMaster(const Fault& fault) {
    std::set<Endpoint> reached_by;
    uint32_t bits = fault.other;
    const auto take = [&](Endpoint end) {
      if ((bits & 1) != 0) reached_by.insert(end);
      bits >>= 1;
    };
    for (uint32_t i = 0; i < knobs_.servers; ++i) take(ServerEnd(i));
    for (uint32_t i = 0; i < knobs_.workers; ++i) take(WorkerEnd(i));
    supervisor_.SplitMaster({std::move(reached_by), fault.duration, fault.pause, fault.restarted});
  }

  void GrowTopic() {
    env_.topic.Grow(&topic_rng_);
    if (!env_.faulty) return env_.topic.Finish();
    env_.scheduler.After(nanoseconds(topic_rng_.Below(400'000'000)), nullptr,
                         [this] { GrowTopic(); });
  }

  void QuickDisk() {
    env_.journal.set_sync_max(knobs_.sync_max);
    env_.disk.set_delay_max(knobs_.disk_max);
  }

  void Heal() {
    if (!env_.faulty) return;
    env_.faulty = false;
    env_.trace.Add(env_.scheduler.now(), "fault", "all faults end");
    env_.network.Heal();
    env_.lost_masters.clear();
    env_.disk.set_full(false);
    env_.disk.set_torn_reads(0);
    env_.topic.set_reachable(true);
    env_.topic.Finish();
    QuickDisk();
    supervisor_.Resume(milliseconds(300));
    deadline_ = env_.scheduler.now() + kEndsWithin;
  }

  bool Succeeded() const {
    const auto& meta = env_.journal.state().meta;
    return meta.has_value() && meta->state == JobState::kSucceeded;
  }

  bool Over() {
    const TimePoint now = env_.scheduler.now();
    if (!succeeded_ && Succeeded()) {
      succeeded_ = true;
      Heal();
      // COMMITTED shards must survive, and be forgotten again, also after the end.
      Rng rng = env_.Stream(5);
      if (knobs_.servers > 0 && rng.Below(4) == 0) {
        supervisor_.Kill(Role::kServer, static_cast<uint32_t>(rng.Below(knobs_.servers)));
      }
      deadline_ = now + kSettles;
      settled_by_ = now + kSettlesWithin;
    }
    if (succeeded_ && now > deadline_ && now < settled_by_ && !Settled())
      deadline_ = now + kSettles;
    return now > deadline_ || env_.scheduler.steps() > kStepsMax;
  }

  /// Everything is served, and everything forgotten.
  bool Settled() const {
    if (env_.master == nullptr || !env_.master->serving()) return false;
    if (knobs_.servers == 0) return true;
    for (uint32_t p = 0; p < knobs_.partitions; ++p) {
      const ps::Partition* partition = env_.master->Current(PartitionId(p));
      if (partition == nullptr) return false;
      // Of a group, the shard of the last step is in use for good.
      if (!knobs_.group.has_value() && partition->sizes().window_shards > 0) return false;
    }
    return true;
  }

  void CheckEnd() {
    if (!succeeded_ || env_.scheduler.steps() > kStepsMax) {
      const auto& meta = env_.journal.state().meta;
      return env_.oracle.Fail(
          "does-not-end",
          fmt::format("the job is {} {} s after the last fault",
                      meta.has_value() ? ToString(meta->state) : "not begun", kEndsWithin.count()));
    }
    if (env_.master == nullptr || !env_.master->serving()) {
      return env_.oracle.Fail("end-served", "no master serves at the end");
    }
    const auto current = [this](PartitionId id) { return env_.master->Current(id); };
    if (!knobs_.group.has_value()) {
      return env_.oracle.OnEnd(env_.master->core(), env_.journal.state(), current);
    }
    env_.judge.OnEnd(env_.journal.state());
    if (knobs_.servers > 0) env_.oracle.CheckTablesAtEnd(env_.master->core(), current);
  }

  RunResult Result() {
    RunResult result;
    result.failure_kind = env_.oracle.kind();
    result.failure = env_.oracle.text();
    if (env_.oracle.failed()) {
      env_.trace.Add(env_.scheduler.now(), "VIOLATION", "{}: {}", result.failure_kind,
                     result.failure);
    }
    result.hash = env_.trace.hash();
    result.simulated = env_.scheduler.now() - began_;
    result.deliveries = env_.network.deliveries();
    result.crashes = supervisor_.crashes();
    result.steps = env_.scheduler.steps();
    result.probes = env_.probes;
    result.probes.Hit(Probe::kGroupRollback, env_.judge.rollbacks());
    result.probes.Hit(Probe::kLostMessage, env_.network.lost());
    result.probes.Hit(Probe::kDoubledMessage, env_.network.doubled());
    result.probes.Hit(Probe::kLateMessage, env_.network.late());
    result.probes.Hit(Probe::kCutMessage, env_.network.cut());
    return result;
  }

  const Knobs knobs_;
  const FaultPlan plan_;
  Env env_;
  Supervisor supervisor_;
  Rng topic_rng_ = env_.Stream(10);
  std::unique_ptr<ForgottenWorker> forgotten_;
  TimePoint began_{};
  TimePoint deadline_ = TimePoint::max();
  TimePoint settled_by_{};
  bool succeeded_ = false;
};

}  // namespace

RunResult Simulate(const RunOptions& options) {
  return World(options).Run();
}

}  // namespace muster::sim
