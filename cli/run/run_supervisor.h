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
  /// Starts of master and scaler that the master knows from an earlier process of this run (a pod
  /// that was replaced). The reports count on from there: it ignores starts that it knows.
  uint32_t master_starts_before = 0;
  uint32_t scaler_starts_before = 0;
  RestartPolicy::Options restarts;
  /// The job file's: the master ends the leases of a drain after it, and the drain after twice it.
  std::chrono::milliseconds drain_timeout{30'000};
  /// What a drain may take beyond the master's phases: calls, and a master that is started again.
  std::chrono::milliseconds drain_slack{10'000};
  /// A master that has answered before and is silent for this long is killed and restarted.
  std::chrono::milliseconds master_silence_max{10'000};
  /// As above for a master that has not answered yet. While it reads its data, it beats.
  std::chrono::milliseconds master_start_max{300'000};
  /// As above for a scaler, which gives a sign ten times a second; and for one that has given none
  /// yet.
  std::chrono::milliseconds scaler_silence_max{10'000};
  std::chrono::milliseconds scaler_start_max{60'000};
  /// From SIGTERM to SIGKILL, of the master.
  std::chrono::milliseconds stop_timeout{10'000};
  /// The same for the scaler, which must end every node in this time.
  std::chrono::milliseconds scaler_stop_timeout{15'000};
  /// How long the scaler may take to end by itself after the job's end: it waits for workers, then
  /// stops one role after the other.
  std::chrono::milliseconds finish_wait{45'000};
  /// How long the master then stays for nodes of other machines, which hear of the end from it.
  std::chrono::milliseconds joined_wait{30'000};
  /// How long a failure that we found (a crash loop) waits until the master has recorded it.
  std::chrono::milliseconds cancel_wait{5'000};
  /// Another process continues what this one gives up, as in the cluster: then the job fails only
  /// if the master says so.
  bool continues_elsewhere = false;
};

// Events of its own.
/// The master is alive, but refused to answer a question that was asked at `asked_at`.
struct MasterRefused {
  TimePoint asked_at;
};
struct ScalerBeat {};   // the scaler gave a sign of life
struct MasterBeat {};   // a master that does not answer yet has read some of its data
struct DrainWanted {};  // the first Ctrl-C, or SIGTERM; the second is StopWanted
/// This process must go, but the run continues elsewhere: workers and servers live on.
struct LeaveWanted {};
using RunEvent = std::variant<NodeStarted, NodeExited, MasterAnswered, MasterRefused, ScalerBeat,
                              MasterBeat, DrainWanted, LeaveWanted, StopWanted, Tick>;

// Effects of its own.
struct AskDrain {};
/// Kills every worker and server of the run.
struct EndNodes {};
/// Before the scaler is stopped: it shall end workers and servers, and not leave them to a
/// successor.
struct AskEndNodes {};
using RunEffect = std::variant<StartNode, StopNode, KillNode, TellMaster, AskDrain, AskCancel,
                               AskEndNodes, EndNodes, Note>;

/// How it all ended.
struct RunOutcome {
  enum class State : uint8_t {
    kSucceeded,
    kFailed,
    kDrained,
    kCancelled,
    kStopped,       // ended at once by the user, or the drain took too long; can be resumed
    kBadInput,      // the master refused the job or the data at its start, or a server did
    kUnrestorable,  // a server could not read its snapshots; can be resumed when they are back
    kLeft,          // LeaveWanted
    kGivenUp,       // a failure of ours, with continues_elsewhere: the job is not over
    kTakenOver,     // another master has taken over the job, which continues there
  };
  State state = State::kFailed;
  std::string reason;
};
std::string ToString(RunOutcome::State state);  // "succeeded", "stopped", ...
/// The exit code of kLeft, 128 + SIGTERM: the Job of Kubernetes starts another pod.
inline constexpr int kLeftExit = 143;
/// Of `muster run`: docs/cli.md lists them.
int ExitCode(RunOutcome::State state);

/// The supervisor of one run. It starts the master and, when the master answers, the scaler. It
/// restarts both when they end, and ends when the job ends. A value with one owner; not
/// thread-safe.
class RunSupervisor {
 public:
  explicit RunSupervisor(const RunSupervisorOptions& options);

  std::vector<RunEffect> Step(const RunEvent& event, TimePoint now);

  /// Set once master and scaler are gone and nothing will be started any more.
  const std::optional<RunOutcome>& outcome() const { return outcome_; }
  /// Starts beyond the first, of the master or the scaler.
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
    bool wanted = false;  // false before its time has come
    TimePoint start_at;
    TimePoint started_at;
    TimePoint exited_at;
    TimePoint last_heard;  // or when it was started
    uint32_t starts_before = 0;
    uint32_t starts = 0;
    uint64_t progress_at_start = 0;
    bool heard = false;        // in this life
    bool told_to_end = false;  // by us, in this life
    std::string killed_for;    // by us, in this life; empty: it was not killed
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

  /// False: it was another life of the master.
  bool HearMaster(TimePoint asked_at);
  void TakeView(const MasterView& view);
  void EnterDraining();
  void EnterFinishing(const MasterView& view);
  void Collect(const MasterView& view);
  /// This process stood still (a stopped terminal, a laptop that slept), so the silence is no fault
  /// of
  /// the others.
  void ForgiveOwnPause(TimePoint now);
  void WatchSilence();
  bool KeptAlive(const Child& child) const;
  void Restart(Child* child, const NodeExited& event);
  /// The job cannot continue: asks the master to end it as failed.
  void GiveUp(std::string reason);
  void Advance();
  void AdvanceFinishing(bool late);
  void StartDue();
  void Kill(Child* child, std::string why);
  void Stop(Child* child, std::chrono::milliseconds timeout);
  void EnterStopping(RunOutcome outcome);
  void EnterTakenOver(const NodeExited& event);
  /// As the master counts them.
  static uint32_t AllStarts(const Child& child) { return child.starts_before + child.starts; }
  bool Running(const Child& child) const { return child.state == Child::State::kRunning; }
  Child& ChildOf(const std::string& node);
  void Emit(RunEffect effect) { effects_.push_back(std::move(effect)); }

  RunSupervisorOptions options_;
  Child master_;
  Child scaler_;
  Stage stage_ = Stage::kStarting;
  std::optional<RunOutcome> pending_;  // what the outcome will be when all is gone
  std::optional<RunOutcome> outcome_;
  std::optional<std::string> failure_;  // ours: a crash loop
  bool answered_ = false;
  bool nodes_ended_ = false;
  uint64_t progress_ = 0;  // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint asked_last_;  // a drain or a cancel
  std::optional<TimePoint> deadline_;
  TimePoint collecting_since_;
  bool told_of_unheard_ = false;
  // The effects of the present step.
  TimePoint now_;
  std::vector<RunEffect> effects_;
};

}  // namespace muster
