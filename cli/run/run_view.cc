#include "cli/run/run_view.h"

#include <fmt/format.h>

#include <utility>

#include "cli/run/event_lines.h"
#include "cli/run/node_counts.h"
#include "proto/messages/node_role.h"

namespace muster {
namespace {

/// The most lines about the events of one answer.
constexpr size_t kEventsShownMax = 20;

}  // namespace

RunView::RunView(Options options, const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      started_at_(clock->Now()),
      started_wall_us_(static_cast<uint64_t>(clock->Wall().count())),
      display_(options_.progress, options_.progress_fd) {}

std::chrono::milliseconds RunView::elapsed() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock_->Now() - started_at_);
}

void RunView::OnAnswer(MasterLink::Answer answer) {
  answered_at_ = clock_->Now();
  rate_.Add(answer.asked_at, TotalsOf(answer.status).done);
  size_t shown = 0;
  for (EventLine& line : EventLines(answer.events, started_wall_us_)) {
    const bool told = options_.caller_tells_ends && line.told_elsewhere;
    ShowEvent(std::move(line.text), !told && ++shown <= kEventsShownMax);
  }
  status_ = std::move(answer.status);
}

void RunView::ShowEvent(std::string text, bool prints) {
  last_event_ = std::move(text);
  if (prints && display_.mode() == ProgressDisplay::Mode::kLines) {
    display_.Print(fmt::format("  {}", last_event_));
  }
}

void RunView::OnNote(const Note& note) {
  last_event_ = note.text.substr(0, note.text.find('\n'));
  if (note.answer) {
    display_.Answer(note.text);
  } else {
    display_.Print(note.text);
  }
}

void RunView::OnDecisions(const std::vector<scaler::rest::Event>& events) {
  for (const scaler::rest::Event& event : events) {
    decisions_shown_ = event.id;
    std::optional<std::string> line = DecisionLine(event, started_wall_us_);
    if (line) ShowEvent(*std::move(line), true);
  }
}

std::optional<AddressFor> RunView::WantsDashboard() const {
  if (dashboard_shown_) return std::nullopt;
  return display_.mode() == ProgressDisplay::Mode::kBlock ? AddressFor::kTerminal
                                                          : AddressFor::kLog;
}

void RunView::OnDashboard(const std::string& address) {
  if (address.empty()) return;
  dashboard_shown_ = true;
  display_.Print(fmt::format("dashboard: {}", address));
}

void RunView::Draw(const Own& own) {
  ProgressInput input{.status = status_, .elapsed = elapsed()};
  input.records_per_second = rate_.PerSecond();
  input.servers_wanted = options_.servers;
  input.workers_wanted =
      WorkersWanted(own.workers_planned, status_ ? &*status_ : nullptr, options_.workers);
  if (status_) {
    input.servers_running = CountRunning(*status_, NodeRole::kServer);
    input.workers_running = CountRunning(*status_, NodeRole::kWorker);
    input.server_restarts = CountRestarts(*status_, NodeRole::kServer);
    input.worker_restarts = CountRestarts(*status_, NodeRole::kWorker);
    input.master_silent = clock_->Now() - answered_at_ > options_.silence;
  }
  input.master_restarts = own.master_restarts;
  input.scaler_restarts = own.scaler_restarts;
  input.waiting_for = own.waiting_for;
  input.last_event = last_event_;
  display_.Draw(input, clock_->Now());
}

SummaryInput RunView::Finish(RunOutcome outcome) {
  display_.Clear();
  SummaryInput summary{.job = options_.job, .outcome = std::move(outcome), .status = status_};
  summary.elapsed = elapsed();
  if (status_) {
    summary.server_restarts = CountRestarts(*status_, NodeRole::kServer);
    summary.worker_restarts = CountRestarts(*status_, NodeRole::kWorker);
  }
  return summary;
}

}  // namespace muster
