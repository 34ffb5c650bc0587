#include "cli/cluster/follow.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/follow_words.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "proto/fields/json.h"

namespace muster::cluster {
namespace {

constexpr int kTickMs = 200;
constexpr std::chrono::milliseconds kAskInterval{500};
// When the view ends, it waits for the answer to its last question. So this must be short.
constexpr std::chrono::milliseconds kAskDeadline{3'000};
constexpr std::chrono::milliseconds kMasterSilence{10'000};
constexpr std::chrono::seconds kDecisionsInterval{2};
constexpr std::chrono::milliseconds kDecisionsDeadline{1'000};
constexpr uint32_t kDecisionsMax = 1'000;
constexpr uint32_t kSummaryLines = 200;

/// True if the job does not exist any more, so nobody knows how it ended.
bool IsGone(JobStage stage) {
  return stage == JobStage::kAbsent || stage == JobStage::kDeleted || stage == JobStage::kReplaced;
}

}  // namespace

Follower::Follower(Cluster* cluster, JobLink* link, FollowOptions options)
    : cluster_(cluster),
      link_(link),
      options_(std::move(options)),
      view_({.job = options_.spec.name,
             .servers = options_.spec.ps.replicas,
             .workers = options_.spec.worker.replicas,
             .progress = options_.progress,
             .silence = kMasterSilence},
            &cluster->clock()) {}

int Follower::Run() {
  while (true) {
    Look();
    const JobStage stage = look_.stage;
    if (stage == JobStage::kEnded) return Finish(look_);
    if (IsGone(stage)) {
      view_.display().Clear();
      return kExitFailed;
    }
    if (stage == JobStage::kRunning && master_ == nullptr) {
      const absl::StatusOr<Endpoint> endpoint = link_->state().ReadEndpoint();
      if (endpoint.ok()) {
        // It must wait while the master is away: only a waiting call drives the handshake with the
        // next pod over the tunnel.
        master_ =
            std::make_unique<MasterLink>(MakeAdminClient(OperatorTarget(link_->state(), *endpoint),
                                                         kAskDeadline, WhenAway::kWait),
                                         endpoint->run_id, kAskInterval, &cluster_->clock());
      }
    }
    if (master_ != nullptr) {
      for (MasterLink::Answer& answer : master_->TakeAnswers()) view_.OnAnswer(std::move(answer));
    }
    if (stage == JobStage::kRunning && view_.status()) {
      ShowDashboard();
      ShowDecisions();
    }
    if (view_.status()) view_.Draw({});
    if (Wait()) return Leave();
  }
}

void Follower::Look() {
  const JobLook now = link_->watch().newest();
  const std::string news = NewsOf(std::exchange(look_, now), now, options_.asks,
                                  DeleteCommand(cluster_->ns(), options_.spec.name));
  if (!news.empty() && IsGone(look_.stage)) view_.display().Answer(news);
  if (!news.empty() && !IsGone(look_.stage)) view_.display().Print(news);
  if (options_.keeper != nullptr) {
    for (const std::string& note : options_.keeper->TakeNotes()) view_.display().Answer(note);
  }
  const absl::Status trouble = link_->watch().trouble();
  if (!trouble.ok() && !std::exchange(is_away_, true)) {
    view_.display().Print(
        fmt::format("the job cannot be looked at ({}); it goes on without us", Message(trouble)));
  }
  if (trouble.ok() && std::exchange(is_away_, false)) {
    view_.display().Print("the API server answers again");
  }
}

void Follower::ShowDashboard() {
  const std::optional<AddressFor> reader = view_.WantsDashboard();
  if (!reader) return;
  view_.OnDashboard(*reader == AddressFor::kTerminal
                        ? DashboardAddress(link_->state(), *reader)
                        : fmt::format("`muster dashboard {}` shows it", options_.asks));
}

void Follower::ShowDecisions() {
  const TimePoint now = cluster_->clock().Now();
  if (now - decisions_at_ < kDecisionsInterval) return;
  decisions_at_ = now;
  const absl::StatusOr<scaler::rest::RestClient> scaler =
      FindScaler(link_->state(), kDecisionsDeadline);
  if (!scaler.ok()) return;
  const absl::StatusOr<scaler::rest::EventList> list =
      scaler->Events(view_.decisions_shown(), kDecisionsMax);
  if (list.ok()) view_.OnDecisions(list->events);
}

bool Follower::Wait() {
  std::array<pollfd, 2> fds{
      {{options_.signal_fd, POLLIN, 0}, {master_ == nullptr ? -1 : master_->wake_fd(), POLLIN, 0}}};
  return ::poll(fds.data(), fds.size(), kTickMs) > 0 && fds[0].revents != 0;
}

int Follower::Leave() {
  view_.display().Clear();
  PrintNote(LeavingText(look_, options_.spec.name, options_.asks,
                        DeleteCommand(cluster_->ns(), options_.spec.name)));
  return kExitDrained;
}

int Follower::Finish(const JobLook& look) {
  const SummaryInput summary = view_.Finish(OutcomeOf(look));
  master_.reset();
  if (options_.output == OutputFormat::kJson) {
    PrintData(JsonText(SummaryToJson(summary), 2) + "\n");
    return ExitCodeOf(look);
  }
  // The run's own summary is more complete than what we have seen.
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
