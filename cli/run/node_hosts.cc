#include "cli/run/node_hosts.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/run/pod_environment.h"
#include "cli/run/pod_run.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "host/processes/local_host.h"
#include "host/processes/tree_usage.h"
#include "job/in_cluster.h"
#include "kubernetes/client/client.h"
#include "kubernetes/config/credentials.h"
#include "kubernetes/config/kubeconfig.h"
#include "kubernetes/pods/former_pods.h"
#include "kubernetes/pods/pod_host.h"

namespace muster {
namespace {

constexpr uint64_t kPodsFileMax = 4 << 20;
constexpr std::chrono::milliseconds kAskAgain{1'000};
/// Within the silence after which `muster run` kills a scaler that has given a sign.
constexpr std::chrono::milliseconds kAnswerMax{5'000};

absl::StatusOr<kubernetes::ClusterAccess> OwnAccess() {
  return kubernetes::InClusterAccess(ReadEnvironment("KUBERNETES_SERVICE_HOST").value_or(""),
                                     ReadEnvironment("KUBERNETES_SERVICE_PORT").value_or(""),
                                     std::string(kubernetes::kServiceAccountFolder));
}

absl::StatusOr<NodeUsage> UsageOfOwnProcess(uint64_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const TreeUsage usage, ReadProcessUsage(static_cast<pid_t>(pid)));
  NodeUsage own;
  own.cpu = usage.cpu;
  own.memory_bytes = usage.memory_bytes;
  return own;
}

/// Gives a sign of life; -1: to nobody.
void Beat(int fd) {
  const uint64_t one = 1;
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
}

}  // namespace

/// The API server of the cluster in which this process is.
class HostOpener::Cluster {
 public:
  Cluster(kubernetes::ClusterAccess access, const Clock* clock)
      : clock_(clock),
        credentials_(std::move(access), clock),
        client_(&credentials_, clock),
        asking_(&credentials_, clock,
                {.connect_deadline = kAnswerMax / 2, .request_deadline = kAnswerMax / 2}) {}

  kubernetes::Client* client() { return &client_; }

  /// OK when the server answers at all.
  absl::Status Ask(const std::string& ns) {
    const absl::Status answer = asking_.MayI("list", kubernetes::Resource::kPods, "", ns).status();
    const bool away = absl::IsUnavailable(answer) || absl::IsDeadlineExceeded(answer);
    return away ? answer : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<NodeHost>> OpenPods(const RunPlan& plan, int beat_fd) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(kInClusterPodsFile, kPodsFileMax));
    absl::StatusOr<kubernetes::PodTemplates> templates = kubernetes::ParsePodTemplates(text);
    if (!templates.ok()) return Annotate(templates.status(), kInClusterPodsFile);
    return std::make_unique<kubernetes::PodHost>(
        &client_, clock_,
        kubernetes::PodHostOptions{.run = {.job = InClusterNames(plan.job.name).job,
                                           .ns = plan.cluster_namespace,
                                           .run = plan.run_id},
                                   .templates = *std::move(templates),
                                   .usage_of_process = UsageOfOwnProcess,
                                   .seed = static_cast<uint64_t>(::getpid()),
                                   .beat = [beat_fd] { Beat(beat_fd); }});
  }

 private:
  const Clock* const clock_;
  kubernetes::CredentialSource credentials_;
  kubernetes::Client client_;
  kubernetes::Client asking_;
};

HostOpener::HostOpener(const RunPlan* plan, const ScalerCommandOptions* options, const Clock* clock)
    : plan_(plan), options_(options), clock_(clock) {}

HostOpener::~HostOpener() = default;

absl::StatusOr<std::unique_ptr<NodeHost>> HostOpener::OpenMachine() const {
  const StateDirectory state(plan_->job.state_directory);
  return LocalHost::Open({.program = plan_->scaler_program,
                          .log_directory = state.logs(),
                          .life_fd = options_->life_fd,
                          .held_fd = options_->held_fd,
                          .socket_directory = state.nodes(),
                          .run_id = plan_->run_id,
                          .command_of = [plan = plan_](const std::string& node, NodeRole role) {
                            return CommandOf(*plan, node, role);
                          }});
}

absl::StatusOr<std::unique_ptr<NodeHost>> HostOpener::Open(int signal_fd) {
  if (plan_->cluster_namespace.empty()) return OpenMachine();
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, OwnAccess());
  cluster_ = std::make_unique<Cluster>(std::move(access), clock_);
  bool said = false;
  while (true) {
    Beat(options_->beat_fd);
    const absl::Status answer = cluster_->Ask(plan_->cluster_namespace);
    if (answer.ok()) return cluster_->OpenPods(*plan_, options_->beat_fd);
    if (!std::exchange(said, true)) {
      Log(LogLevel::kWarning, "waiting for the API server: {}", Message(answer));
    }
    pollfd signal{signal_fd, POLLIN, 0};
    if (::poll(&signal, 1, static_cast<int>(kAskAgain.count())) > 0) {
      return absl::CancelledError("told to end before the API server answered");
    }
  }
}

absl::Status CheckOwnRights(const std::string& ns) {
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, OwnAccess());
  const SystemClock clock;
  kubernetes::CredentialSource credentials(std::move(access), &clock);
  kubernetes::Client client(&credentials, &clock);
  return CheckRightsOfJob(ns, [&](const kubernetes::Right& right) {
    return client.MayI(right.verb, right.resource, right.subresource, ns);
  });
}

absl::Status EndFormerPods(const RunPlan& plan) {
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, OwnAccess());
  const SystemClock clock;
  kubernetes::CredentialSource credentials(std::move(access), &clock);
  kubernetes::Client client(&credentials, &clock);
  const kubernetes::PodRun run{
      .job = InClusterNames(plan.job.name).job, .ns = plan.cluster_namespace, .run = plan.run_id};
  kubernetes::FormerPods former(run);
  std::vector<std::string> said;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(
        const kubernetes::ObjectList pods,
        client.List(kubernetes::Resource::kPods, run.ns, kubernetes::PodsOfAllRuns(run)));
    kubernetes::FormerPods::Step step = former.Look(pods.items, clock.Now());
    for (const kubernetes::ObjectIdentity& pod : step.deletions) {
      const absl::Status deleted =
          client
              .Delete({.resource = kubernetes::Resource::kPods, .ns = run.ns, .name = pod.name},
                      {.uid = pod.uid, .grace = kubernetes::FormerPods::kGrace})
              .status();
      // Aborted: another pod has its name now.
      const bool gone = absl::IsNotFound(deleted) || absl::IsAborted(deleted);
      if (!gone) MUSTER_RETURN_IF_ERROR(deleted);
    }
    if (step.waits.empty()) return absl::OkStatus();
    if (step.waits != said) {
      PrintNote(fmt::format("waiting for pods of an earlier run to end: {}",
                            fmt::join(step.waits, ", ")));
      said = std::move(step.waits);
    }
    SleepFor(kAskAgain);
  }
}

absl::StatusOr<std::vector<nlohmann::json>> PodsOfJob(const RunPlan& plan) {
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, OwnAccess());
  const SystemClock clock;
  kubernetes::CredentialSource credentials(std::move(access), &clock);
  kubernetes::Client client(&credentials, &clock);
  MUSTER_ASSIGN_OR_RETURN(
      kubernetes::ObjectList pods,
      client.List(kubernetes::Resource::kPods, plan.cluster_namespace,
                  kubernetes::PodsOfAllRuns({.job = InClusterNames(plan.job.name).job,
                                             .ns = plan.cluster_namespace,
                                             .run = plan.run_id})));
  return std::move(pods.items);
}

void EndPods(const RunPlan& plan) {
  const SystemClock clock;
  const auto end = [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, OwnAccess());
    kubernetes::CredentialSource credentials(std::move(access), &clock);
    kubernetes::Client client(&credentials, &clock);
    const kubernetes::PodRun run{
        .job = InClusterNames(plan.job.name).job, .ns = plan.cluster_namespace, .run = plan.run_id};
    MUSTER_ASSIGN_OR_RETURN(
        const kubernetes::ObjectList pods,
        client.List(kubernetes::Resource::kPods, run.ns, kubernetes::PodsOf(run)));
    absl::Status all;
    for (const nlohmann::json& pod : pods.items) {
      const nlohmann::json& meta = pod.at("metadata");
      const absl::Status deleted = client
                                       .Delete({.resource = kubernetes::Resource::kPods,
                                                .ns = run.ns,
                                                .name = meta.value("name", "")},
                                               {.uid = meta.value("uid", "")})
                                       .status();
      if (!absl::IsNotFound(deleted)) all.Update(deleted);
    }
    return all;
  };
  const absl::Status ended = end();
  if (!ended.ok()) PrintNote(fmt::format("pods of the run may be left: {}", Message(ended)));
}

}  // namespace muster
