#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "admin/master_link.h"
#include "base/clock.h"
#include "cli/run/summary.h"
#include "cli/show/progress.h"
#include "cli/state/scaler_link.h"
#include "scaler/model/event_model.h"

namespace muster {

/// Shows a job for `muster run`, wherever the job runs: progress, events of the master, the
/// scaler's decisions and the address of the dashboard. Belongs to one thread.
class RunView {
 public:
  struct Options {
    std::string job;
    /// Numbers from the job file.
    uint32_t servers = 0;
    uint32_t workers = 0;
    ProgressDisplay::Mode progress = ProgressDisplay::Mode::kOff;
    int progress_fd = 2;
    /// If the master has not answered for this long, it counts as silent.
    std::chrono::milliseconds silence{2'000};
    /// The caller itself reports the ends of the job, the master and the scaler.
    bool caller_tells_ends = false;
  };
  /// Facts that only the caller knows.
  struct Own {
    /// From the plan of this run's scaler.
    std::optional<uint32_t> workers_planned = {};
    uint32_t master_restarts = 0;
    uint32_t scaler_restarts = 0;
    /// The same as ProgressInput::waiting_for.
    std::string waiting_for = {};
  };
  /// `clock` outlives the view.
  RunView(Options options, const Clock* clock);

  bool is_off() const { return display_.mode() == ProgressDisplay::Mode::kOff; }
  std::chrono::milliseconds elapsed() const;
  /// The status in the newest answer. None if the master has not answered yet.
  const std::optional<JobStatus>& status() const { return status_; }
  /// The display, for other lines.
  ProgressDisplay& display() { return display_; }

  void OnAnswer(MasterLink::Answer answer);
  /// Shows a text. If the user has not asked for it, it is shown only with the progress.
  void OnNote(const Note& note);
  /// Takes the scaler's events with ids above decisions_shown().
  void OnDecisions(const std::vector<scaler::rest::Event>& events);
  uint64_t decisions_shown() const { return decisions_shown_; }
  /// Whom the address of the dashboard is for. Its token is a secret, and others may read a pipe or
  /// a file. None if the address was shown.
  std::optional<AddressFor> WantsDashboard() const;
  /// Shows the address once. It is "" if there is none yet.
  void OnDashboard(const std::string& address);

  /// Draws the progress if it is time to do so.
  void Draw(const Own& own);
  /// Removes the progress. Returns what the view knows for the summary.
  SummaryInput Finish(RunOutcome outcome);

 private:
  void ShowEvent(std::string text, bool prints);

  const Options options_;
  const Clock* const clock_;
  const TimePoint started_at_;
  const uint64_t started_wall_us_;
  ProgressDisplay display_;
  RateMeter rate_;
  std::optional<JobStatus> status_;
  TimePoint answered_at_;
  std::string last_event_;
  uint64_t decisions_shown_ = 0;
  bool dashboard_shown_ = false;
};

}  // namespace muster
