#include "cli/run/node_hosts.h"

#include <poll.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/state/state_directory.h"
#include "host/processes/local_host.h"
#include "host/processes/tree_usage.h"
#include "job/in_cluster.h"
#include "kubernetes/client/client.h"
#include "kubernetes/pods/pod_host.h"

namespace muster {
namespace {

constexpr uint64_t kPodsFileMax = 4 << 20;
constexpr std::chrono::milliseconds kAskAgain{1'000};
/// Shorter than the silence after which `muster run` kills a scaler that has given a sign of life.
constexpr std::chrono::milliseconds kAnswerMax{5'000};

absl::StatusOr<NodeUsage> UsageOfOwnProcess(uint64_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const TreeUsage usage, ReadProcessUsage(static_cast<pid_t>(pid)));
  NodeUsage own;
  own.cpu = usage.cpu;
  own.memory_bytes = usage.memory_bytes;
  return own;
}

/// Gives a sign of life. If `fd` is -1, nobody gets it.
void Beat(int fd) {
  const uint64_t one = 1;
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
}

}  // namespace

HostOpener::HostOpener(const RunPlan* plan, const ScalerCommandOptions* options, const Clock* clock)
    : plan_(plan), options_(options), clock_(clock) {}

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

absl::StatusOr<std::unique_ptr<NodeHost>> HostOpener::OpenPods() {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(kInClusterPodsFile, kPodsFileMax));
  absl::StatusOr<kubernetes::PodTemplates> templates = kubernetes::ParsePodTemplates(text);
  if (!templates.ok()) return Annotate(templates.status(), kInClusterPodsFile);
  return std::make_unique<kubernetes::PodHost>(
      &cluster_->client(), clock_,
      kubernetes::PodHostOptions{.run = PodRunOf(*plan_),
                                 .templates = *std::move(templates),
                                 .usage_of_process = UsageOfOwnProcess,
                                 .seed = static_cast<uint64_t>(::getpid()),
                                 .beat = [fd = options_->beat_fd] { Beat(fd); }});
}

absl::StatusOr<std::unique_ptr<NodeHost>> HostOpener::Open(int signal_fd) {
  if (plan_->cluster_namespace.empty()) return OpenMachine();
  MUSTER_ASSIGN_OR_RETURN(cluster_, OwnCluster::Open(clock_));
  kubernetes::Client asking(
      cluster_->credentials(), clock_,
      {.connect_deadline = kAnswerMax / 2, .request_deadline = kAnswerMax / 2});
  bool said = false;
  while (true) {
    Beat(options_->beat_fd);
    const absl::Status answer =
        asking.MayI("list", kubernetes::Resource::kPods, "", plan_->cluster_namespace).status();
    // Any answer shows that the API server is there.
    const bool away = absl::IsUnavailable(answer) || absl::IsDeadlineExceeded(answer);
    if (!away) return OpenPods();
    if (!std::exchange(said, true)) {
      Log(LogLevel::kWarning, "waiting for the API server: {}", Message(answer));
    }
    pollfd signal{signal_fd, POLLIN, 0};
    if (::poll(&signal, 1, static_cast<int>(kAskAgain.count())) > 0) {
      return absl::CancelledError("told to end before the API server answered");
    }
  }
}

}  // namespace muster
