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

/// The scaler's decisions about workers and servers, as a deterministic step: which node is
/// started, killed or given up, and when. There is no process, socket or clock here.
namespace muster::scaler {

struct KeeperOptions {
  RestartPolicy::Options restarts;
  /// A worker that the master calls lost is killed only after this time. It may only be paused, and
  /// come back.
  std::chrono::milliseconds worker_lost_max{60'000};
  /// How long workers may take to end by themselves after the job's end.
  std::chrono::milliseconds finish_wait{15'000};
  /// How long a lost node may take to write its stacks before it is killed.
  std::chrono::milliseconds dump_wait{3'000};
  /// From SIGTERM to SIGKILL, for nodes that end at the job's end and nodes that hang. A node that
  /// is restarted gets the drain_timeout if that is longer.
  std::chrono::milliseconds stop_timeout{10'000};
  /// How long the last exits wait until the master hears of them.
  std::chrono::milliseconds report_wait{3'000};
  /// The job file's drain timeout. A worker that has not handed over by then is stopped.
  std::chrono::milliseconds drain_timeout{30'000};
  /// The limits that added workers start with, unless their peers have more.
  Resources worker_limits;
};

// The following events and effects are the keeper's own. The others are in host/messages.h.
/// The master has heard of the node's exit.
struct ExitHeard {
  std::string node;
};
/// SetLimits was refused, and the node continues with its former limits. Report it at once, before
/// any other event.
struct LimitRefused {
  std::string node;
  Resources limits;
};
/// The run must not continue, because no other scaler would continue it after this process.
struct RunAbandoned {
  std::string why;
};
using KeeperEvent =
    std::variant<NodeStarted, NodeExited, NodeHeld, NodeResized, ExitHeard, LimitRefused,
                 RunAbandoned, MasterAnswered, StopWanted, Tick, Order>;
/// The node's exit is recorded everywhere, so the process that supervised it may end.
struct ReleaseNode {
  std::string node;
};
/// Changes the limits of a running node in place. It is repeated when a later scaler takes the node
/// over.
struct SetLimits {
  std::string node;
  Resources limits;
};
/// Writes the stacks of all threads of a node into its log. The node continues, whether or not that
/// works.
struct DumpNode {
  std::string node;
};
/// Asks the master to drain the node. It is repeated until the master's status shows the drain.
struct AskDrainNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
/// Asks the master to drain the job. It is repeated until the master's status shows the drain.
struct AskDrainJob {
  std::string why;
};
/// Tells people that the next start of a node is delayed. It ended repeatedly without an order or a
/// crash, or it needs another place.
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
    kBadInput,  // a server refused its input at its first start; another start would not help
  };
  State state = State::kJobOver;
  std::string reason;
};

/// Keeps the nodes of one run alive while the job trains, and ends them when it is over.
///
/// The keeper tells the master of an exit first. When the master has heard, the keeper decides what
/// follows and puts the decision into plan(), which becomes durable. Only then is the exit released
/// and the node started again. So a later scaler always finds either the exit itself or a plan that
/// contains it. Therefore, write plan() before you carry out the effects of a step. The wait for
/// the master costs nothing, because a node cannot work without the master.
///
/// A value with one owner; not thread-safe.
class NodeKeeper {
 public:
  /// Nodes that are kRunning in `plan` run already. Their NodeStarted or NodeExited comes, for the
  /// first time or again.
  NodeKeeper(const KeeperOptions& options, const Plan& plan);

  std::vector<KeeperEffect> Step(const KeeperEvent& event, TimePoint now);

  /// What a later scaler needs to know.
  Plan plan() const;
  /// All nodes, in the order of their names.
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
  /// The node waits without a deadline, for as long as the cluster has no place for it.
  void On(const NodeHeld& event);
  /// If the node needs more memory than its machine can ever give, it is started again elsewhere.
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

  /// At the end of a step, takes the actions that are due for a node in this state.
  void Advance(KeeperNode* node, Waiting* waiting);
  void Advance(KeeperNode* node, Running* life);
  void Advance(KeeperNode* node, Reporting* gone);
  /// Calls Advance() for every node that is in this state now. Servers come first, as their names
  /// do.
  template <typename State>
  void AdvanceAll();
  /// Takes the actions that are due for the job.
  void AdvanceStage();
  void AdvanceFinishing();

  /// nullptr if there is none with this name.
  KeeperNode* NodeOf(const std::string& name);
  template <typename State>
  bool Any() const;
  bool AnyRunning(NodeRole role) const;
  bool TakesOrders() const { return stage_ == Stage::kWaiting || stage_ == Stage::kTraining; }

  // These are about the job.
  void EnterPhase(const MasterView& view);
  /// If this process stood still, the silence of the others is not their fault.
  void ForgiveOwnPause(TimePoint now);
  /// The job cannot continue, so the keeper asks the master to end it as failed.
  void GiveUp(std::string reason);
  void StopRole(NodeRole role);
  void EnterStopping(KeeperOutcome outcome);

  // These are about a life that runs.
  void WatchNode(const MasterView::Node& seen, TimePoint asked_at);
  void EndLost(const KeeperNode& node, Running* life);
  void AdvanceDrain(const KeeperNode& node, Running* life);
  /// Called when the host reports a found life for the first time.
  void Greet(KeeperNode* node, Running* life);
  void TellHold(const KeeperNode& node, const Running& life);
  void Stop(const KeeperNode& node, Running* life, std::chrono::milliseconds timeout);

  // These are about an exit that the master has heard of.
  bool KeptAlive(const KeeperNode& node) const;
  /// True if the nodes must end though the job may not be over.
  bool ToldToStop() const;
  /// True if a worker ended as it does when it sees the job's end or is told to leave.
  static bool EndedWell(const KeeperNode& node, const Reporting& gone);
  /// Whether a worker with EndedWell() was really told to leave, as the master knows. None if only
  /// the master's next answer can show it.
  std::optional<bool> WasAskedToLeave(const KeeperNode& node, const Reporting& gone) const;
  /// What the master reports about the node's present life; nullptr if nothing.
  const MasterView::Node* SeenOf(const KeeperNode& node) const;
  KeeperNode::State AfterExit(KeeperNode* node, const Reporting& gone);
  /// The extra delay of a worker that left by itself, beyond the delay for crashes.
  std::chrono::milliseconds DelayOfLeave(KeeperNode* node, const Reporting& gone);
  Waiting WaitForMachine(KeeperNode* node, const Reporting& gone);
  /// The cluster took the node's place away. This counts neither as a crash nor as a shortage. But
  /// if it happens again and again before the job makes progress, the node comes back later each
  /// time.
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
  std::optional<std::string> failure_;    // found by us, such as a crash loop
  std::optional<std::string> abandoned_;  // why the job is to be drained
  uint64_t progress_ = 0;                 // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint view_asked_at_;
  TimePoint asked_last_;               // when the master was last asked to cancel or drain the job
  std::optional<TimePoint> deadline_;  // for workers to end after the job's end
  std::optional<TimePoint> gone_at_;   // when every process was gone
  // The time and the effects of the present step.
  TimePoint now_;
  std::vector<KeeperEffect> effects_;
};

}  // namespace muster::scaler
