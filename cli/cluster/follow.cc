#include "cli/cluster/follow.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/follow_words.h"
#include "cli/run/event_lines.h"
#include "cli/run/node_counts.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "proto/fields/json.h"
#include "proto/messages/node_role.h"

namespace muster::cluster {
namespace {

constexpr int kTickMs = 200;
constexpr std::chrono::milliseconds kAskInterval{500};
// The end of the view waits for a question that has no answer yet.
constexpr std::chrono::milliseconds kAskDeadline{3'000};
constexpr std::chrono::milliseconds kMasterSilence{10'000};
constexpr std::chrono::seconds kDecisionsInterval{2};
constexpr std::chrono::milliseconds kDecisionsDeadline{1'000};
constexpr uint32_t kDecisionsMax = 1'000;
constexpr size_t kEventLinesMax = 20;
constexpr uint32_t kSummaryLines = 200;

std::chrono::milliseconds Since(TimePoint then, TimePoint now) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - then);
}

/// The job is no more, and nobody knows how it ended.
bool IsGone(JobStage stage) {
  return stage == JobStage::kAbsent || stage == JobStage::kDeleted || stage == JobStage::kReplaced;
}

}  // namespace

Follower::Follower(Cluster* cluster, JobLink* link, FollowOptions options)
    : cluster_(cluster),
      link_(link),
      options_(std::move(options)),
      started_at_(cluster->clock().Now()),
      started_wall_us_(static_cast<uint64_t>(cluster->clock().Wall().count())),
      display_(options_.progress, 2) {}

int Follower::Run() {
  while (true) {
    Look();
    const JobStage stage = look_.stage;
    if (stage == JobStage::kEnded) return Finish(look_);
    if (IsGone(stage)) {
      display_.Clear();
      return kExitFailed;
    }
    if (stage == JobStage::kRunning && master_ == nullptr) {
      const absl::StatusOr<Endpoint> endpoint = link_->state().ReadEndpoint();
      if (endpoint.ok()) {
        // Only a call that waits drives the handshake with the next pod over the tunnel.
        master_ =
            std::make_unique<MasterLink>(MakeAdminClient(OperatorTarget(link_->state(), *endpoint),
                                                         kAskDeadline, WhenAway::kWait),
                                         endpoint->run_id, kAskInterval, &cluster_->clock());
      }
    }
    if (master_ != nullptr) ReadAnswers();
    if (stage == JobStage::kRunning && status_) {
      if (!dashboard_shown_) ShowDashboard();
      ShowDecisions();
    }
    if (status_ && options_.progress != ProgressDisplay::Mode::kOff) {
      display_.Draw(Progress(), cluster_->clock().Now());
    }
    if (Wait()) return Leave();
  }
}

void Follower::Look() {
  const JobLook now = link_->watch().newest();
  const std::string news = NewsOf(std::exchange(look_, now), now, options_.asks,
                                  DeleteCommand(cluster_->ns(), options_.spec.name));
  if (!news.empty() && IsGone(look_.stage)) display_.Answer(news);
  if (!news.empty() && !IsGone(look_.stage)) display_.Print(news);
  if (options_.keeper != nullptr) {
    for (const std::string& note : options_.keeper->TakeNotes()) display_.Answer(note);
  }
  const absl::Status trouble = link_->watch().trouble();
  if (!trouble.ok() && !std::exchange(is_away_, true)) {
    display_.Print(
        fmt::format("the job cannot be looked at ({}); it goes on without us", Message(trouble)));
  }
  if (trouble.ok() && std::exchange(is_away_, false)) {
    display_.Print("the API server answers again");
  }
}

void Follower::ReadAnswers() {
  for (MasterLink::Answer& answer : master_->TakeAnswers()) {
    answered_at_ = cluster_->clock().Now();
    rate_.Add(answer.asked_at, TotalsOf(answer.status).done);
    size_t shown = 0;
    for (const EventLine& line : EventLines(answer.events, started_wall_us_)) {
      last_event_ = line.text;
      if (display_.mode() == ProgressDisplay::Mode::kLines && ++shown <= kEventLinesMax) {
        display_.Print(fmt::format("  {}", last_event_));
      }
    }
    status_ = std::move(answer.status);
  }
}

void Follower::ShowDashboard() {
  // The token is a secret, and others may read a pipe or a file.
  const bool is_terminal = display_.mode() == ProgressDisplay::Mode::kBlock;
  const std::string address = is_terminal
                                  ? DashboardAddress(link_->state(), AddressFor::kTerminal)
                                  : fmt::format("`muster dashboard {}` shows it", options_.asks);
  if (address.empty()) return;
  dashboard_shown_ = true;
  display_.Print(fmt::format("dashboard: {}", address));
}

void Follower::ShowDecisions() {
  const TimePoint now = cluster_->clock().Now();
  if (now - decisions_at_ < kDecisionsInterval) return;
  decisions_at_ = now;
  const absl::StatusOr<scaler::rest::RestClient> scaler =
      FindScaler(link_->state(), kDecisionsDeadline);
  if (!scaler.ok()) return;
  const absl::StatusOr<scaler::rest::EventList> list =
      scaler->Events(event_shown_.value_or(0), kDecisionsMax);
  if (!list.ok()) return;
  for (const scaler::rest::Event& event : list->events) {
    event_shown_ = event.id;
    const std::optional<std::string> line = DecisionLine(event, started_wall_us_);
    if (!line) continue;
    last_event_ = *line;
    if (display_.mode() == ProgressDisplay::Mode::kLines) {
      display_.Print(fmt::format("  {}", last_event_));
    }
  }
}

ProgressInput Follower::Progress() const {
  ProgressInput input;
  input.status = status_;
  input.elapsed = Since(started_at_, cluster_->clock().Now());
  input.records_per_second = rate_.PerSecond();
  input.servers_wanted = options_.spec.ps.replicas;
  input.workers_wanted = WorkersWanted(std::nullopt, &*status_, options_.spec.worker.replicas);
  input.servers_running = CountRunning(*status_, NodeRole::kServer);
  input.workers_running = CountRunning(*status_, NodeRole::kWorker);
  input.server_restarts = CountRestarts(*status_, NodeRole::kServer);
  input.worker_restarts = CountRestarts(*status_, NodeRole::kWorker);
  input.master_silent = cluster_->clock().Now() - answered_at_ > kMasterSilence;
  input.last_event = last_event_;
  return input;
}

bool Follower::Wait() {
  std::array<pollfd, 2> fds{
      {{options_.signal_fd, POLLIN, 0}, {master_ == nullptr ? -1 : master_->wake_fd(), POLLIN, 0}}};
  return ::poll(fds.data(), fds.size(), kTickMs) > 0 && fds[0].revents != 0;
}

int Follower::Leave() {
  display_.Clear();
  PrintNote(LeavingText(look_, options_.spec.name, options_.asks,
                        DeleteCommand(cluster_->ns(), options_.spec.name)));
  return kExitDrained;
}

int Follower::Finish(const JobLook& look) {
  display_.Clear();
  master_.reset();
  SummaryInput summary{.job = options_.spec.name, .outcome = OutcomeOf(look), .status = status_};
  summary.elapsed = Since(started_at_, cluster_->clock().Now());
  if (status_) {
    summary.server_restarts = CountRestarts(*status_, NodeRole::kServer);
    summary.worker_restarts = CountRestarts(*status_, NodeRole::kWorker);
  }
  if (options_.output == OutputFormat::kJson) {
    PrintData(JsonText(SummaryToJson(summary), 2) + "\n");
    return ExitCodeOf(look);
  }
  // The run's own summary knows more than we saw.
  const absl::StatusOr<std::string> log =
      look.pod.empty()
          ? absl::StatusOr<std::string>("")
          : cluster_->client().Logs(cluster_->ns(), look.pod,
                                    {.container = "muster", .tail_lines = kSummaryLines});
  const std::string told = log.ok() ? SummaryIn(*log, options_.spec.name) : "";
  PrintData(told.empty() ? SummaryText(summary) : told);
  return ExitCodeOf(look);
}

}  // namespace muster::cluster
