#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "scaler/core/kept_node.h"
#include "scaler/core/messages.h"
#include "scaler/core/orders.h"
#include "scaler/core/plan.h"
#include "scaler/core/restart_policy.h"

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
  /// From SIGTERM to SIGKILL at the job's end, and of one that hangs. Who is relaunched has the
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
/// SetLimits was refused, and the node runs on within its former limits. To be said at once, before
/// any other event.
struct LimitRefused {
  std::string node;
  Resources limits;
};
using KeeperEvent =
    std::variant<NodeStarted, NodeExited, ExitHeard, LimitRefused, MasterAnswered, StopWanted, Tick,
                 LimitNode, RelaunchNode, ScaleWorkers, EndNode, FailJob, PausePolicies>;
/// Nobody needs to remember the node's exit any more: its supervising process may go.
struct ReleaseNode {
  std::string node;
};
/// Of a node that runs, in place. Repeated when a successor takes the node over.
struct SetLimits {
  std::string node;
  Resources limits;
};
/// The stacks of all its threads, into its log; it goes on however that ends.
struct DumpNode {
  std::string node;
};
/// To be asked of the master: it makes the node hand over what it has. Repeated until its status
/// shows it.
struct AskDrainNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
/// The node ended by nobody's order and no crash, again and again: it waits before it is started
/// once more. For people.
struct RelaunchDelayed {
  std::string node;
  std::string why;
};
/// A worker has left for good, as the master was asked by somebody else.
struct WorkerSentAway {
  std::string node;
};
using KeeperEffect =
    std::variant<StartNode, StopNode, KillNode, DumpNode, TellMaster, ReleaseNode, SetLimits,
                 AskDrainNode, AskCancel, RelaunchDelayed, WorkerSentAway, Note>;

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
/// durable in plan(), and only then is the exit released and the node started again: whoever takes
/// over at any moment finds either the exit itself or a plan that knows it. So plan() is to be
/// written before the effects of a step are carried out. Waiting for the master costs nothing: a
/// node gets nowhere without it.
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
  struct Node {
    NodePlan durable;
    RestartPolicy policy;
    RestartPolicy leaves;     // of a worker that leaves by itself, by what it has done itself
    RestartPolicy shortages;  // starts in a row that the machine was too short for
    /// kReporting: it is gone, and the master is being told.
    enum class State : uint8_t { kWaiting, kRunning, kReporting, kFinished };
    State state = State::kWaiting;
    std::optional<NodeExited> exit;     // of kReporting
    bool progressed = false;            // of kReporting
    std::optional<TimePoint> heard_at;  // of kReporting: when the master had heard of the exit
    TimePoint start_at;
    TimePoint started_at;
    uint64_t progress_at_start = 0;
    bool adopted = false;       // and not heard of since
    bool seen_running = false;  // by the master, in this life
    bool told_to_end = false;   // by us, in this life
    bool excused = false;       // its end counts toward no crash loop
    bool worked = false;        // a worker, in this life: it has finished a minibatch
    bool hangs = false;         // says who wants it relaunched
    TimePoint stop_due;         // SIGKILL, when told to end
    std::optional<TimePoint> lost_since;
    std::optional<TimePoint> dumped_at;  // because it is lost
    std::optional<TimePoint> drain_began;
    std::optional<TimePoint> drain_asked;  // the last time
    bool drain_shown = false;              // by the master
  };

  void On(const NodeStarted& event);
  void On(const NodeExited& event);
  void On(const ExitHeard& event);
  void On(const MasterAnswered& event);
  void On(const StopWanted&);
  void On(const Tick&) {}
  // node_keeper_orders.cc
  void On(const LimitNode& order);
  void On(const LimitRefused& event);
  void On(const RelaunchNode& order);
  void On(const ScaleWorkers& order);
  void On(const EndNode& order);
  void On(const FailJob& order);
  void On(const PausePolicies& order) { paused_ = order.policies; }
  /// nullptr: there is none of that name.
  Node* NodeOf(const std::string& name);
  bool TakesOrders() const { return stage_ == Stage::kWaiting || stage_ == Stage::kTraining; }
  static bool Leaves(const Node& node);
  /// A worker that ended as one that saw the job's end, or was asked to leave, would.
  static bool EndedWell(const Node& node);
  bool HasWorked(const std::string& name, const Node& node) const;
  /// Progress of the job counts for a node only if the node was there to take part in it.
  bool Progressed(const Node& node) const;
  /// Workers that live and are to go on, by number.
  std::map<uint32_t, std::string> LivingWorkers() const;
  Resources LimitsOfNewWorker() const;
  void Leave(const std::string& name, Node* node);
  void AddWorkers(uint32_t count);
  /// Goes on with what is wanted of nodes that run.
  void AdvanceEndings();
  void AdvanceDrain(const std::string& name, Node* node);
  void Stop(const std::string& name, Node* node, std::chrono::milliseconds timeout);

  void EnterPhase(const MasterView& view);
  /// This process stood still: nobody else is to blame for the silence.
  void ForgiveOwnPause(TimePoint now);
  void WatchNode(const MasterView::Node& seen, TimePoint asked_at);
  void EndLost(const std::string& name, Node* node);
  bool KeptAlive(const Node& node) const;
  /// Of a worker that EndedWell(): the master knows whether it was. None: its next answer will say.
  std::optional<bool> WasAskedToLeave(const std::string& name, const Node& node) const;
  /// Decides of the exits that the master has heard of.
  void DecideExits();
  void DecideExit(const std::string& name, Node* node);
  void Relaunch(const std::string& name, Node* node);
  /// How long it waits beyond what crashes cost it, since it left by itself.
  std::chrono::milliseconds DelayOfLeave(const std::string& name, Node* node);
  void WaitForMachine(const std::string& name, Node* node);
  Node NewNode(const NodePlan& durable) const;
  void Finish(Node* node);
  /// The job cannot go on: asks the master to end it as failed.
  void GiveUp(std::string reason);
  void Advance();
  void AdvanceFinishing();
  void StartDueNodes();
  void StopRole(NodeRole role);
  void EnterStopping(KeeperOutcome outcome);
  bool Any(Node::State state) const;
  bool AnyRunning(NodeRole role) const;
  void Emit(KeeperEffect effect) { effects_.push_back(std::move(effect)); }

  KeeperOptions options_;
  std::string run_id_;
  uint64_t began_wall_us_ = 0;
  uint32_t workers_ = 0;
  std::set<std::string> paused_;
  std::map<std::string, Node> nodes_;
  Stage stage_ = Stage::kWaiting;
  KeeperOutcome pending_;
  std::optional<KeeperOutcome> outcome_;
  std::optional<std::string> failure_;  // ours, such as a crash loop
  uint64_t progress_ = 0;               // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint view_asked_at_;
  TimePoint asked_last_;               // a cancel
  std::optional<TimePoint> deadline_;  // of workers after the job's end
  std::optional<TimePoint> gone_at_;   // every process
  // Of the step under way.
  TimePoint now_;
  std::vector<KeeperEffect> effects_;
};

}  // namespace muster::scaler
