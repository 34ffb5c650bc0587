#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/master_link.h"
#include "base/clock.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_supervisor.h"
#include "cli/run/run_view.h"
#include "cli/run/summary.h"
#include "cli/state/state_directory.h"
#include "host/processes/node_launcher.h"

namespace muster {

/// One run of a job. It carries out the supervisor's decisions about master and scaler, passes
/// events to the supervisor, and shows what the master reports of the other nodes. Belongs to the
/// main thread.
class JobRunner {
 public:
  struct Options {
    RunPlan plan;
    RunSupervisorOptions supervisor;
    /// This program. Its verb `supervise` is started.
    std::string program;
    ProgressDisplay::Mode progress = ProgressDisplay::Mode::kOff;
    int progress_fd = 2;
    /// A signalfd for SIGINT, SIGTERM and SIGHUP.
    int signal_fd = -1;
    /// The lock of the state directory. It stays open until every node is gone.
    int lock_fd = -1;
    /// The run ends at once when this is no longer the parent of this process. 0: any may be.
    pid_t parent = 0;
    /// Called once an hour. May be empty.
    std::function<void()> renew = {};
    /// If true, a signal means that this process must go while the run continues elsewhere.
    bool leaves_at_signal = false;
    /// Ends workers and servers that are not processes of this machine. May be empty.
    std::function<void()> end_nodes = {};
    /// Called once, when the job first makes progress in this process. May be empty.
    std::function<void()> on_progress = {};
    /// The name of this machine, which the master reports together with its own; "" = none.
    std::string host = "";
  };
  /// `clock` outlives the runner.
  JobRunner(Options options, const Clock* clock);
  /// Kills all processes that are left.
  ~JobRunner();

  /// Runs until every node is gone. Returns the data for the summary.
  SummaryInput Run();

 private:
  void Wait();
  void ReadSignals();
  /// Notices that the process that started the run has ended.
  void LookForParent();
  void ReadAnswers();
  void ReadBeats();
  void Carry(const RunEvent& event);
  void Do(const StartNode& effect);
  void Do(const StopNode& effect);
  void Do(const KillNode& effect);
  void Do(TellMaster effect);
  void Do(const AskDrain&) { link_->AskDrain(); }
  void Do(const AskCancel& effect) { link_->AskFail(effect.reason); }
  void Do(const AskEndNodes&);
  void Do(const EndNodes&);
  void CloseLife();
  void Do(const Note& effect) { view_.OnNote(effect); }
  void Measure(const JobStatus& status, TimePoint asked_at);
  void Draw();
  /// Shows the scaler's decisions, people's orders and their outcomes since the last call.
  void ShowDecisions();
  RunView::Own OwnFacts() const;

  const Options options_;
  const Clock* const clock_;
  const StateDirectory state_;
  RunSupervisor supervisor_;
  /// A pipe. Only this process has its writing end. Nodes live as long as that is open.
  int life_read_ = -1;
  int life_write_ = -1;
  /// Eventfds that every scaler increments, and every master while it reads its data.
  int beat_fd_ = -1;
  int master_beat_fd_ = -1;
  /// An eventfd. Once it is not 0, the scaler ends workers and servers.
  int end_fd_ = -1;
  NodeLauncher launcher_;
  std::unique_ptr<MasterLink> link_;
  RunView view_;
  std::deque<RunEvent> events_;
  TimePoint swept_at_;
  TimePoint renewed_at_;
  int signals_ = 0;
  bool parent_gone_ = false;
  uint64_t event_bytes_ = 0;  // size of the scaler's event file when it was last read
  // Training records and times, for the rate in the summary.
  bool progressed_ = false;  // options_.on_progress was called
  std::optional<uint64_t> trained_before_;
  uint64_t trained_ = 0;
  std::optional<TimePoint> training_began_;
  TimePoint trained_at_;
};

}  // namespace muster
