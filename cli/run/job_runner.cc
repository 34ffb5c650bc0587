#include "cli/run/job_runner.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "cli/run/node_commands.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "host/processes/log_reader.h"
#include "proto/messages/node_role.h"
#include "scaler/decision/log/event_file.h"
#include "scaler/decision/log/event_log.h"
#include "scaler/service/plan_file.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kPollInterval{250};
constexpr std::chrono::milliseconds kTickInterval{100};
constexpr std::chrono::hours kRenewInterval{1};
constexpr std::chrono::milliseconds kAskDeadline{2'000};
constexpr std::chrono::milliseconds kMasterSpeaksAfter{500};
constexpr uint32_t kDecisionsMax = 1'000;

}  // namespace

JobRunner::JobRunner(Options options, const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      state_(options_.plan.job.state_directory),
      supervisor_(options_.supervisor),
      launcher_({.program = options_.program,
                 .log_directory = state_.logs(),
                 .held_fd = options_.lock_fd,
                 .spare_supervisors = true}),
      view_({.job = options_.plan.job.name,
             .servers = options_.plan.job.ps.replicas,
             .workers = options_.plan.job.worker.replicas,
             .progress = options_.progress,
             .progress_fd = options_.progress_fd,
             .caller_tells_ends = true},
            clock) {
  int life[2];
  MUSTER_CHECK_MSG(::pipe2(life, O_CLOEXEC) == 0,
                   "cannot create a pipe; is the limit of open files reached?");
  life_read_ = life[0];
  life_write_ = life[1];
  beat_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  end_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  master_beat_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  MUSTER_CHECK_MSG(beat_fd_ >= 0 && end_fd_ >= 0 && master_beat_fd_ >= 0,
                   "cannot create an eventfd; is the limit of open files reached?");
}

JobRunner::~JobRunner() {
  CloseLife();
  ::close(life_read_);
  ::close(beat_fd_);
  ::close(end_fd_);
  ::close(master_beat_fd_);
}

SummaryInput JobRunner::Run() {
  renewed_at_ = clock_->Now();
  link_ = std::make_unique<MasterLink>(
      MakeAdminClient(OperatorTarget(state_, EndpointOf(options_.plan)), kAskDeadline,
                      WhenAway::kWait),
      options_.plan.run_id, kPollInterval, clock_);
  while (!supervisor_.outcome().has_value()) {
    Carry(Tick{});
    while (!events_.empty()) {
      const RunEvent event = std::move(events_.front());
      events_.pop_front();
      Carry(event);
    }
    Draw();
    if (clock_->Now() - swept_at_ >= kTickInterval) {
      swept_at_ = clock_->Now();
      launcher_.Sweep();
    }
    if (options_.renew && clock_->Now() - renewed_at_ >= kRenewInterval) {
      renewed_at_ = clock_->Now();
      options_.renew();
    }
    if (!supervisor_.outcome().has_value()) Wait();
  }
  link_.reset();
  SummaryInput summary = view_.Finish(*supervisor_.outcome());
  summary.master_restarts = supervisor_.restarts(NodeRole::kMaster);
  summary.scaler_restarts = supervisor_.restarts(NodeRole::kScaler);
  summary.trained_records = trained_;
  if (training_began_.has_value() && trained_at_ > *training_began_) {
    summary.training =
        std::chrono::duration_cast<std::chrono::milliseconds>(trained_at_ - *training_began_);
  }
  return summary;
}

void JobRunner::Wait() {
  std::vector<int> wake_fds = {link_->wake_fd()};
  if (options_.signal_fd >= 0) wake_fds.push_back(options_.signal_fd);
  for (LaunchReport& report : launcher_.Wait(kTickInterval, wake_fds)) {
    std::visit([this](auto& event) { events_.push_back(std::move(event)); }, report);
  }
  ReadSignals();
  LookForParent();
  ReadBeats();
  ReadAnswers();
}

void JobRunner::ReadBeats() {
  uint64_t beats = 0;
  if (::read(beat_fd_, &beats, sizeof(beats)) == sizeof(beats)) events_.push_back(ScalerBeat{});
  if (::read(master_beat_fd_, &beats, sizeof(beats)) == sizeof(beats)) {
    events_.push_back(MasterBeat{});
  }
}

void JobRunner::ReadSignals() {
  signalfd_siginfo info;
  while (options_.signal_fd >= 0 &&
         ::read(options_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
    if (options_.leaves_at_signal) {
      events_.push_back(LeaveWanted{});
    } else if (++signals_ == 1) {
      events_.push_back(DrainWanted{});
    } else {
      events_.push_back(StopWanted{});
    }
  }
}

// It is not the signal of a parent's death, because the kernel sends that when the thread ends that
// started this process.
void JobRunner::LookForParent() {
  if (options_.parent == 0 || parent_gone_ || ::getppid() == options_.parent) return;
  parent_gone_ = true;
  events_.push_back(StopWanted{});
}

void JobRunner::ReadAnswers() {
  if (const std::optional<TimePoint> asked_at = link_->TakeRefusal()) {
    events_.push_back(MasterRefused{*asked_at});
  }
  for (MasterLink::Answer& answer : link_->TakeAnswers()) {
    events_.push_back(MasterAnswered{ToView(answer.status), answer.asked_at});
    Measure(answer.status, answer.asked_at);
    view_.OnAnswer(std::move(answer));
  }
}

void JobRunner::Measure(const JobStatus& status, TimePoint asked_at) {
  const uint64_t trained = status.progress.records_done;
  if (!trained_before_.has_value()) trained_before_ = trained;
  const bool leased =
      std::any_of(status.datasets.begin(), status.datasets.end(), [](const auto& dataset) {
        return std::any_of(dataset.epochs.begin(), dataset.epochs.end(),
                           [](const auto& epoch) { return epoch.shards.leased > 0; });
      });
  if (!training_began_.has_value() && (leased || trained > *trained_before_)) {
    training_began_ = asked_at;
  }
  // A replay reduces the number of trained records, so the largest number counts.
  if (trained > *trained_before_ + trained_) {
    trained_ = trained - *trained_before_;
    trained_at_ = asked_at;
    if (!std::exchange(progressed_, true) && options_.on_progress) options_.on_progress();
  }
}

void JobRunner::Carry(const RunEvent& event) {
  for (const RunEffect& effect : supervisor_.Step(event, clock_->Now())) {
    std::visit([this](const auto& e) { Do(e); }, effect);
  }
}

void JobRunner::Do(const StartNode& effect) {
  NodeCommand command = CommandOf(options_.plan, effect.node, effect.role);
  if (effect.role == NodeRole::kScaler) {
    const std::vector<std::string> flags = ScalerDescriptorFlags({.life_fd = life_read_,
                                                                  .held_fd = options_.lock_fd,
                                                                  .beat_fd = beat_fd_,
                                                                  .end_fd = end_fd_});
    command.command.insert(command.command.end(), flags.begin(), flags.end());
    command.inherited_fds = {life_read_, options_.lock_fd, beat_fd_, end_fd_};
  }
  if (effect.role == NodeRole::kMaster) {
    command.command.insert(command.command.end(), {"--beat-fd", std::to_string(master_beat_fd_)});
    command.inherited_fds = {master_beat_fd_};
  }
  const absl::Status status = launcher_.Start(command, {.start = effect.start});
  if (!status.ok()) events_.push_back(NotBegun(effect.node, status));
}

void JobRunner::Do(const AskEndNodes&) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(end_fd_, &one, sizeof(one));
}

void JobRunner::Do(const EndNodes&) {
  CloseLife();
  if (options_.end_nodes) options_.end_nodes();
}

void JobRunner::CloseLife() {
  if (life_write_ >= 0) ::close(std::exchange(life_write_, -1));
}

void JobRunner::Do(TellMaster effect) {
  effect.host = options_.host;
  link_->Tell(effect);
}

void JobRunner::Do(const StopNode& effect) {
  launcher_.Stop(effect.node, effect.timeout);
  // The supervisor stops the master last, so nothing is left to ask.
  if (effect.node == ToString(NodeRole::kMaster)) link_->HangUp();
}

void JobRunner::Do(const KillNode& effect) {
  launcher_.Kill(effect.node);
}

RunView::Own JobRunner::OwnFacts() const {
  RunView::Own own{.master_restarts = supervisor_.restarts(NodeRole::kMaster),
                   .scaler_restarts = supervisor_.restarts(NodeRole::kScaler)};
  // The plan has the number of workers that the scaler wants now.
  const absl::StatusOr<scaler::Plan> plan = scaler::ReadPlan(state_.scaler() + "/plan.json");
  if (plan.ok() && plan->run_id == options_.plan.run_id) own.workers_planned = plan->workers;
  // Earlier, the last lines of the log may still be those of an earlier run's master.
  if (!view_.status().has_value() && view_.elapsed() >= kMasterSpeaksAfter) {
    own.waiting_for = LastWords(launcher_.LogPath("master"), 1, 400);
    while (own.waiting_for.ends_with('\n')) own.waiting_for.pop_back();
  }
  return own;
}

void JobRunner::Draw() {
  if (view_.is_off()) return;
  if (const std::optional<AddressFor> reader = view_.WantsDashboard()) {
    view_.OnDashboard(DashboardAddress(state_, *reader));
  }
  ShowDecisions();
  view_.Draw(OwnFacts());
}

void JobRunner::ShowDecisions() {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(scaler::EventFile(state_.scaler()), error);
  if (error || bytes == event_bytes_) return;
  event_bytes_ = bytes;
  const absl::StatusOr<scaler::rest::EventList> list =
      scaler::ReadEvents(state_.scaler(), view_.decisions_shown(), kDecisionsMax);
  if (list.ok()) view_.OnDecisions(list->events);
}

}  // namespace muster
