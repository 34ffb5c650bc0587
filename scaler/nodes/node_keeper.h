#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "host/messages.h"
#include "host/restart_policy.h"
#include "scaler/model/kept_node.h"
#include "scaler/model/orders.h"
#include "scaler/nodes/keeper_node.h"
#include "scaler/nodes/kept_workers.h"
#include "scaler/nodes/plan.h"

/// What the scaler decides of workers and servers, as a deterministic step: which is started,
/// killed or given up when. No process, socket or clock here.
namespace muster::scaler {

struct KeeperOptions {
  RestartPolicy::Options restarts;
  /// A worker that the master calls lost is killed only after so long: it may be paused and come
  /// back.
  std::chrono::milliseconds worker_lost_max{60'000};
  /// How long workers may take to end by themselves after the job's end.
  std::chrono::milliseconds finish_wait{15'000};
  /// How long the stacks of a lost node may take before it is killed.
  std::chrono::milliseconds dump_wait{3'000};
  /// From SIGTERM to SIGKILL at the job's end, and of one that hangs. Who is restarted has the
  /// drain_timeout when that is longer.
  std::chrono::milliseconds stop_timeout{10'000};
  /// How long the last exits wait for the master to hear of them.
  std::chrono::milliseconds report_wait{3'000};
  /// The job file's: a worker that was asked to hand over and is still there after it is stopped.
  std::chrono::milliseconds drain_timeout{30'000};
  /// What added workers start with, unless their peers have more.
  Resources worker_limits;
};

// Event and effect of its own.
/// The master has heard of the node's exit.
struct ExitHeard {
  std::string node;
};
/// SetLimits was refused, and the node continues within its former limits. Report it at once,
/// before any other event.
struct LimitRefused {
  std::string node;
  Resources limits;
};
/// The run must not go on, because nobody would continue it after this process.
struct RunAbandoned {
  std::string why;
};
using KeeperEvent =
    std::variant<NodeStarted, NodeExited, NodeHeld, NodeResized, ExitHeard, LimitRefused,
                 RunAbandoned, MasterAnswered, StopWanted, Tick, Order>;
/// The node's exit is recorded everywhere, so its supervising process may end.
struct ReleaseNode {
  std::string node;
};
/// Of a node that runs, in place. Repeated when a successor takes the node over.
struct SetLimits {
  std::string node;
  Resources limits;
};
/// The stacks of all its threads, into its log; it continues however that ends.
struct DumpNode {
  std::string node;
};
/// Asks the master to drain the node. Repeated until its status shows it.
struct AskDrainNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
/// Asks the master to drain the job. Repeated until its status shows it.
struct AskDrainJob {
  std::string why;
};
/// What the keeper does by itself to a node, for people: it ended repeatedly without an order or a
/// crash, so it waits before its next start; or it needs another place.
struct RestartDelayed {
  std::string node;
  std::string why;
};
/// A worker has left for good, because another program asked the master for it.
struct WorkerSentAway {
  std::string node;
};
using KeeperEffect =
    std::variant<StartNode, StopNode, KillNode, DumpNode, TellMaster, ReleaseNode, SetLimits,
                 AskDrainNode, AskDrainJob, AskCancel, RestartDelayed, WorkerSentAway, Note>;

struct KeeperOutcome {
  enum class State : uint8_t {
    kJobOver,
    kStopped,   // told to end
    kBadInput,  // a server refused its input at its first start; starting it again is no use
  };
  State state = State::kJobOver;
  std::string reason;
};

/// Keeps the nodes of one run alive while the job trains, ends them when it is over.
///
/// An exit is told to the master first; when the master has heard, the decision about it is made,
/// durable in plan(), and only then is the exit released and the node started again. So a successor
/// always finds either the exit itself or a plan that contains it. Therefore, write plan() before
/// you carry out the effects of a step. The wait for the master costs nothing, because a node
/// cannot work without it.
///
/// A value with one owner; not thread-safe.
class NodeKeeper {
 public:
  /// Nodes that are kRunning in `plan` run: their NodeStarted or NodeExited comes, first or again.
  NodeKeeper(const KeeperOptions& options, const Plan& plan);

  std::vector<KeeperEffect> Step(const KeeperEvent& event, TimePoint now);

  /// What a successor needs to know.
  Plan plan() const;
  /// In the order of their names.
  std::vector<KeptNode> nodes() const;
  /// Set once every node is gone and nothing will be started any more.
  const std::optional<KeeperOutcome>& outcome() const { return outcome_; }

 private:
  enum class Stage : uint8_t {
    kWaiting,    // for the master's first answer
    kTraining,   // everything is kept alive
    kDraining,   // workers that end are let go
    kFailing,    // the master is told to end the job
    kFinishing,  // the job is over; workers may end by themselves, then servers go
    kStopping,   // everything must go
    kOver,
  };

  using Waiting = KeeperNode::Waiting;
  using Running = KeeperNode::Running;
  using Reporting = KeeperNode::Reporting;
  using Finished = KeeperNode::Finished;

  void On(const NodeStarted& event);
  void On(const NodeExited& event);
  /// It has no deadline: it waits as long as the cluster has no place for it.
  void On(const NodeHeld& event);
  /// More memory that its machine can never give is given to a successor elsewhere.
  void On(const NodeResized& event);
  void On(const ExitHeard& event);
  void On(const RunAbandoned& event);
  void On(const MasterAnswered& event);
  void On(const StopWanted&);
  void On(const Tick&) {}
  void On(const LimitRefused& event);
  void On(const Order& order) {
    std::visit([this](const auto& each) { Obey(each); }, order);
  }
  void Obey(const RestartNode& order);
  void Obey(const ResizeNode& order);
  void Obey(const ScaleWorkers& order);
  void Obey(const EndNode& order);
  void Obey(const DumpStacks& order) { Emit(DumpNode{order.node}); }
  void Obey(const FailJob& order);
  void Obey(const SetPaused& order);
  template <MastersOrder T>
  void Obey(const T&) {}

  /// The due actions for a node in one state, at the end of a step.
  void Advance(KeeperNode* node, Waiting* waiting);
  void Advance(KeeperNode* node, Running* life);
  void Advance(KeeperNode* node, Reporting* gone);
  /// Of every node that is in that state now, servers first as their names come first.
  template <typename State>
  void AdvanceAll();
  /// The due actions for the job.
  void AdvanceStage();
  void AdvanceFinishing();

  /// nullptr if there is none with this name.
  KeeperNode* NodeOf(const std::string& name);
  template <typename State>
  bool Any() const;
  bool AnyRunning(NodeRole role) const;
  bool TakesOrders() const { return stage_ == Stage::kWaiting || stage_ == Stage::kTraining; }

  // Of the job.
  void EnterPhase(const MasterView& view);
  /// This process stood still, so the silence is no fault of the others.
  void ForgiveOwnPause(TimePoint now);
  /// The job cannot continue: asks the master to end it as failed.
  void GiveUp(std::string reason);
  void StopRole(NodeRole role);
  void EnterStopping(KeeperOutcome outcome);

  // Of a life that runs.
  void WatchNode(const MasterView::Node& seen, TimePoint asked_at);
  void EndLost(const KeeperNode& node, Running* life);
  void AdvanceDrain(const KeeperNode& node, Running* life);
  /// Of a found life the host has told for the first time.
  void Greet(KeeperNode* node, Running* life);
  void TellHold(const KeeperNode& node, const Running& life);
  void Stop(const KeeperNode& node, Running* life, std::chrono::milliseconds timeout);

  // Of an exit that the master has heard of.
  bool KeptAlive(const KeeperNode& node) const;
  /// The nodes end though the job may not be over.
  bool ToldToStop() const;
  /// True if a worker ended in the way of one that saw the job's end, or was told to leave.
  static bool EndedWell(const KeeperNode& node, const Reporting& gone);
  /// True if a worker with EndedWell() was really told so, as the master knows. None: its next
  /// answer will show it.
  std::optional<bool> WasAskedToLeave(const KeeperNode& node, const Reporting& gone) const;
  /// The master's data about its present life; nullptr: none.
  const MasterView::Node* SeenOf(const KeeperNode& node) const;
  KeeperNode::State AfterExit(KeeperNode* node, const Reporting& gone);
  /// The extra delay of a worker that left by itself, beyond the delay for crashes.
  std::chrono::milliseconds DelayOfLeave(KeeperNode* node, const Reporting& gone);
  Waiting WaitForMachine(KeeperNode* node, const Reporting& gone);
  /// The cluster took its place away: that counts for nothing, but what is taken away again and
  /// again before it brings progress comes back later each time.
  Waiting ComeBack(KeeperNode* node, const Reporting& gone);

  void Emit(KeeperEffect effect) { effects_.push_back(std::move(effect)); }

  KeeperOptions options_;
  std::string run_id_;
  uint64_t began_wall_us_ = 0;
  KeptWorkers workers_;
  std::set<std::string> paused_;
  KeeperNodes nodes_;
  Stage stage_ = Stage::kWaiting;
  KeeperOutcome pending_;
  std::optional<KeeperOutcome> outcome_;
  std::optional<std::string> failure_;    // ours, such as a crash loop
  std::optional<std::string> abandoned_;  // why the job is to be drained
  uint64_t progress_ = 0;                 // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint view_asked_at_;
  TimePoint asked_last_;               // a cancel, or a drain of the job
  std::optional<TimePoint> deadline_;  // of workers after the job's end
  std::optional<TimePoint> gone_at_;   // every process
  // The effects of the present step.
  TimePoint now_;
  std::vector<KeeperEffect> effects_;
};

}  // namespace muster::scaler
