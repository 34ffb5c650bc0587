#include "cli/node/node_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "cli/node/node_exit.h"
#include "cli/run/pod_environment.h"
#include "cli/run/pod_run.h"
#include "cli/run/run_plan.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "host/exit_note.h"
#include "host/processes/log_reader.h"
#include "host/processes/slot.h"
#include "host/processes/spawn.h"
#include "host/processes/supervise.h"
#include "job/in_cluster.h"

namespace muster {
namespace {

/// The whole log goes to stdout. This much of it is kept for the last words.
constexpr uint64_t kLogBytesMax = 64 << 10;
constexpr uint32_t kLastWordsLines = 20;
constexpr uint64_t kLastWordsBytes = 4'000;
/// The cluster decides how long a node may take to end, and then kills it.
constexpr std::chrono::hours kStopTimeout{24};
/// If the master and the processes that would delete the pod are gone for good, nobody else ends
/// the node. This is longer than Kubernetes waits before it starts the job's pod again.
constexpr std::chrono::seconds kMasterAwayMax = std::chrono::hours(1);
constexpr int kNotFoundExit = 127;
constexpr int kNotExecutableExit = 126;

/// One life of a node in its pod.
struct PodNode {
  PodEnvironment pod;
  NodeRole role = NodeRole::kWorker;
  StateDirectory folder{""};
  NodeCommand command;
};

std::string FolderOf(const PodNodeOptions& options) {
  if (!options.directory.empty()) return std::filesystem::absolute(options.directory).string();
  return TemporaryFolder() + "/muster-node";
}

absl::StatusOr<NodeCommand> MakeCommand(const PodNodeOptions& options, const PodNode& node) {
  MUSTER_ASSIGN_OR_RETURN(
      const LoadedJob job,
      LoadJobIn(node.pod.job_namespace,
                options.job_file.empty() ? kInClusterJobFile : options.job_file, ""));
  RunPlan plan{.job = job.spec,
               .job_file = job.path,
               // Relative commands begin in the folder of the image.
               .base_directory = std::filesystem::current_path().string(),
               .program = OwnProgram(),
               .master_address = options.master_address,
               .job_id = node.pod.job_id};
  // This pod has other files than the job's own pod.
  plan.job.state_directory = node.folder.path();
  if (plan.master_address.empty()) {
    plan.master_address = AddressForOthers(plan.job.master_address, plan.job);
  }
  if (!options.plain_text) {
    plan.certificates = options.tls.empty() ? plan.job.security.certificates : options.tls;
  }
  if (node.role == NodeRole::kWorker) {
    MUSTER_ASSIGN_OR_RETURN(plan.trainer,
                            FindProgram(plan.job.worker.command.front(),
                                        {.base_directory = plan.base_directory,
                                         .path = ReadEnvironment("PATH").value_or("")}));
  }
  NodeCommand command = CommandOf(plan, node.pod.node, node.role);
  command.environment["MUSTER_MASTER_AWAY_MAX"] = std::to_string(kMasterAwayMax.count());
  return command;
}

absl::StatusOr<PodNode> Prepare(const PodNodeOptions& options) {
  PodNode node;
  if (!FromWord(options.role, &node.role)) {
    return absl::InvalidArgumentError(
        fmt::format("--role: expected worker or ps, got '{}'", options.role));
  }
  MUSTER_ASSIGN_OR_RETURN(node.pod, ParseNodePod(ReadEnvironment));
  node.folder = StateDirectory(FolderOf(options));
  MUSTER_RETURN_IF_ERROR_PREPEND(MakeDirectories(node.folder.run()), "--directory");
  MUSTER_RETURN_IF_ERROR_PREPEND(MakeDirectories(node.folder.logs()), "--directory");
  MUSTER_ASSIGN_OR_RETURN(node.command, MakeCommand(options, node));
  if (!node.command.slot_file.empty()) {
    MUSTER_RETURN_IF_ERROR(ResetSlot(node.command.slot_file));
  }
  return node;
}

std::optional<CgroupUsage> OwnUsage() {
  absl::StatusOr<CgroupUsage> usage = Cgroup::ReadOwnUsage();
  return usage.ok() ? std::optional<CgroupUsage>(*std::move(usage)) : std::nullopt;
}

NodeExited RunOnce(const PodNode& node) {
  ContainerEnd end{.node = node.pod.node, .before = OwnUsage()};
  for (const auto& [name, value] : node.command.environment) {
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  const std::string log = node.folder.LogOf(node.pod.node);
  end.exited = Supervise({.name = node.pod.node,
                          .start = node.pod.start,
                          .log_path = log,
                          .log_bytes_max = kLogBytesMax,
                          .copy_fd = STDOUT_FILENO,
                          .working_directory = node.command.working_directory,
                          .stop_timeout = kStopTimeout,
                          .command = node.command.command});
  end.after = OwnUsage();
  end.slot = ReadSlot(node.command.slot_file);
  end.last_words = LastWords(log, kLastWordsLines, kLastWordsBytes);
  return ExitOf(end);
}

int CodeOf(const absl::Status& wrong) {
  switch (wrong.code()) {
    case absl::StatusCode::kNotFound:
      return kNotFoundExit;
    case absl::StatusCode::kPermissionDenied:
      return kNotExecutableExit;
    default:
      return kExitUsage;
  }
}

}  // namespace

int PodNodeCommand(const PodNodeOptions& options) {
  const absl::StatusOr<PodNode> node = Prepare(options);
  const NodeExited exited =
      node.ok() ? RunOnce(*node)
                : NotRun(ReadEnvironment("MUSTER_NODE").value_or(""), CodeOf(node.status()),
                         std::string(Message(node.status())));
  if (!node.ok()) PrintError(Message(node.status()), kExitUsage);
  WriteTerminationLog(options.termination_log, ExitNote(exited));
  return exited.exit.signal != 0 ? 128 + exited.exit.signal : exited.exit.code;
}

}  // namespace muster
