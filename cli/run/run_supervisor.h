#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "host/messages.h"
#include "host/restart_policy.h"

/// The decisions of `muster run`, as a deterministic step: when the master and the scaler are
/// started, killed or given up, and when the job is over. The scaler decides about workers and
/// servers. There is no process, socket or clock here.
namespace muster {

struct RunSupervisorOptions {
  /// How often earlier processes of this run (a pod that was replaced) have started master and
  /// scaler. The reports to the master continue this count, because it ignores starts that it knows
  /// already.
  uint32_t master_starts_before = 0;
  uint32_t scaler_starts_before = 0;
  RestartPolicy::Options restarts;
  /// The job file's drain timeout. The master ends the leases of a drain after this time, and the
  /// drain after twice this time.
  std::chrono::milliseconds drain_timeout{30'000};
  /// How much longer a drain may take than the master's phases, because of calls or a restart of
  /// the master.
  std::chrono::milliseconds drain_slack{10'000};
  /// A master that has answered before and is silent for this long is killed and restarted.
  std::chrono::milliseconds master_silence_max{10'000};
  /// The same for a master that has not answered yet. While it reads its data, it gives signs of
  /// life.
  std::chrono::milliseconds master_start_max{300'000};
  /// The same for a scaler. It gives a sign of life ten times a second. The second time is for a
  /// scaler that has given none yet.
  std::chrono::milliseconds scaler_silence_max{10'000};
  std::chrono::milliseconds scaler_start_max{60'000};
  /// The time from SIGTERM to SIGKILL for the master.
  std::chrono::milliseconds stop_timeout{10'000};
  /// The same for the scaler, which must end every node in this time.
  std::chrono::milliseconds scaler_stop_timeout{15'000};
  /// How long the scaler may take to end by itself after the job's end. It waits for workers, and
  /// then stops one role after the other.
  std::chrono::milliseconds finish_wait{45'000};
  /// How long the master then stays for nodes of other machines, which hear of the job's end from
  /// it.
  std::chrono::milliseconds joined_wait{30'000};
  /// If this process found a failure (a crash loop), how long it waits until the master has
  /// recorded it.
  std::chrono::milliseconds cancel_wait{5'000};
  /// If true, as in the cluster, another process continues what this one gives up. The job then
  /// fails only if the master says so.
  bool continues_elsewhere = false;
};

// Events that only the supervisor has.
/// The master is alive, but refused to answer a question that was asked at `asked_at`.
struct MasterRefused {
  TimePoint asked_at;
};
struct ScalerBeat {};   // the scaler gave a sign of life
struct MasterBeat {};   // a master that does not answer yet has read more of its data
struct DrainWanted {};  // the first Ctrl-C, or SIGTERM; the second is StopWanted
/// This process must go, but the run continues elsewhere: workers and servers live on.
struct LeaveWanted {};
using RunEvent = std::variant<NodeStarted, NodeExited, MasterAnswered, MasterRefused, ScalerBeat,
                              MasterBeat, DrainWanted, LeaveWanted, StopWanted, Tick>;

// Effects that only the supervisor has.
struct AskDrain {};
/// Kills every worker and server of the run.
struct EndNodes {};
/// Comes before the scaler is stopped. It tells the scaler to end workers and servers, and not to
/// leave them to a later scaler.
struct AskEndNodes {};
using RunEffect = std::variant<StartNode, StopNode, KillNode, TellMaster, AskDrain, AskCancel,
                               AskEndNodes, EndNodes, Note>;

/// How the run ended.
struct RunOutcome {
  enum class State : uint8_t {
    kSucceeded,
    kFailed,
    kDrained,
    kCancelled,
    kStopped,       // the user ended it at once, or the drain took too long; it can be resumed
    kBadInput,      // at its start, the master or a server refused the job or the data
    kUnrestorable,  // a server could not read its snapshots; the run can be resumed when they are
                    // back
    kLeft,          // after LeaveWanted
    kGivenUp,       // this process found a failure, with continues_elsewhere: the job is not over
    kTakenOver,     // another master has taken over the job, which continues there
  };
  State state = State::kFailed;
  std::string reason;
};
std::string ToString(RunOutcome::State state);  // "succeeded", "stopped", ...
/// The exit code of kLeft, 128 + SIGTERM. The Job of Kubernetes then starts another pod.
inline constexpr int kLeftExit = 143;
/// The exit code of `muster run`; docs/cli.md lists them.
int ExitCode(RunOutcome::State state);

/// The supervisor of one run. It starts the master and, when the master answers, the scaler. It
/// restarts both when they end, and ends when the job ends. A value with one owner; not
/// thread-safe.
class RunSupervisor {
 public:
  explicit RunSupervisor(const RunSupervisorOptions& options);

  std::vector<RunEffect> Step(const RunEvent& event, TimePoint now);

  /// It is set when master and scaler are gone and nothing will be started any more.
  const std::optional<RunOutcome>& outcome() const { return outcome_; }
  /// How often the master or the scaler was started again.
  uint32_t restarts(NodeRole role) const;

 private:
  enum class Stage : uint8_t {
    kStarting,    // waiting for the master's first answer
    kTraining,    // both are kept alive
    kDraining,    // both are kept alive, until a deadline
    kFinishing,   // the job is over; the scaler ends by itself. Or: the master is told that it is
    kCollecting,  // the scaler is gone; wanted is one more status, and that all know of the end
    kStopping,    // everything must go
    kOver,
  };
  struct Child {
    NodeRole role = NodeRole::kMaster;
    RestartPolicy policy;
    RestartPolicy shortages;  // starts in a row that failed because the machine lacked something
    enum class State : uint8_t { kWaiting, kRunning, kFinished } state = State::kWaiting;
    bool wanted = false;  // false until it is to be started for the first time
    TimePoint start_at;
    TimePoint started_at;
    TimePoint exited_at;
    TimePoint last_heard;  // or when it was started
    uint32_t starts_before = 0;
    uint32_t starts = 0;
    uint64_t progress_at_start = 0;
    bool heard = false;        // in this life
    bool told_to_end = false;  // whether we told it to end, in this life
    std::string killed_for;    // why we killed it, in this life; empty: we did not
  };

  void On(const NodeStarted& event);
  void On(const NodeExited& event);
  void On(const MasterAnswered& event);
  void On(const MasterRefused& event);
  void On(const ScalerBeat&);
  void On(const MasterBeat&);
  void On(const DrainWanted&);
  void On(const LeaveWanted&);
  void On(const StopWanted&);
  void On(const Tick&) {}

  /// Returns false if the answer came from an earlier life of the master.
  bool HearMaster(TimePoint asked_at);
  void TakeView(const MasterView& view);
  void EnterDraining();
  void EnterFinishing(const MasterView& view);
  void Collect();
  /// If this process stood still (a stopped terminal, a laptop that slept), the silence of the
  /// others is not their fault.
  void ForgiveOwnPause(TimePoint now);
  void WatchSilence();
  bool KeptAlive(const Child& child) const;
  void Restart(Child* child, const NodeExited& event);
  /// The job cannot continue, so this asks the master to end it as failed.
  void GiveUp(std::string reason);
  void Advance();
  void AdvanceFinishing(bool late);
  void StartDue();
  void Kill(Child* child, std::string why);
  void Stop(Child* child, std::chrono::milliseconds timeout);
  void EnterStopping(RunOutcome outcome);
  void EnterTakenOver(const NodeExited& event);
  /// The number of starts as the master counts them.
  static uint32_t AllStarts(const Child& child) { return child.starts_before + child.starts; }
  bool Running(const Child& child) const { return child.state == Child::State::kRunning; }
  Child& ChildOf(const std::string& node);
  void Emit(RunEffect effect) { effects_.push_back(std::move(effect)); }

  RunSupervisorOptions options_;
  Child master_;
  Child scaler_;
  Stage stage_ = Stage::kStarting;
  std::optional<RunOutcome> pending_;  // the outcome, once all is gone
  std::optional<RunOutcome> outcome_;
  std::optional<std::string> failure_;  // found by this process: a crash loop
  bool answered_ = false;
  bool nodes_ended_ = false;
  uint64_t progress_ = 0;  // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint view_asked_at_;
  TimePoint asked_last_;  // when the master was last asked to drain or cancel
  std::optional<TimePoint> deadline_;
  TimePoint collecting_since_;
  bool told_of_unheard_ = false;
  // The time and the effects of the present step.
  TimePoint now_;
  std::vector<RunEffect> effects_;
};

}  // namespace muster
