#include "cli/join/join_command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "admin/admin_client.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/status.h"
#include "base/token_file.h"
#include "cli/join/join_runner.h"
#include "cli/run/run_command.h"
#include "cli/run/run_plan.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "host/processes/local_host.h"
#include "host/processes/spawn.h"
#include "security/credentials.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kDeadline{2'000};
constexpr std::chrono::milliseconds kPollInterval{250};
constexpr std::chrono::milliseconds kAskAgain{500};

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != 0 ? name : "unknown-host";
}

/// "gpu-2" -> "worker-gpu-2". Characters that node names may not have are replaced.
std::string NameOfWorker(const std::string& host) {
  std::string name = "worker-" + host.substr(0, 40);
  for (char& c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_';
    if (!fits) c = '-';
  }
  return name;
}

/// One call of `muster join`.
class Join {
 public:
  Join(const JoinOptions& options, int signal_fd)
      : options_(options),
        state_(std::filesystem::absolute(options.state_directory).string()),
        token_file_(options.token_file.empty() ? state_.path() + "/token" : options.token_file),
        host_name_(HostName()),
        signal_fd_(signal_fd) {}

  int Run();

 private:
  absl::Status Check();
  absl::Status CheckCertificates();
  std::unique_ptr<AdminClient> Client(const std::string& job_id, WhenAway when_away) const {
    MasterTarget target{
        .address = options_.master_address, .job = {job_id, ""}, .token_file = token_file_};
    target.joiner = joiner_;
    if (!certificates_.empty()) {
      target.tls = CredentialFilesOf(certificates_, asks_as_);
      target.job.id = certified_job_;
    }
    return MakeAdminClient(std::move(target), kDeadline, when_away);
  }
  v1::JoinNodeRequest Request() const;
  /// Asks until the master answers. Errors: the master refuses; kUnavailable if it was away for too
  /// long; kCancelled if a signal came.
  absl::StatusOr<v1::JoinNodeResponse> AskForPlace();
  absl::StatusOr<JoinRunner::End> RunPlace(const v1::JoinNodeResponse& place);
  NodeCommand CommandOf(const v1::JoinNodeResponse& place) const;
  bool SignalWithin(std::chrono::milliseconds time) const;

  const JoinOptions& options_;
  const StateDirectory state_;
  const std::string token_file_;
  const std::string host_name_;
  const int signal_fd_;
  const SystemClock clock_;
  std::string trainer_;        // absolute
  std::string certificates_;   // absolute; empty: plain text
  std::string certified_job_;  // the job of the certificates
  Role asks_as_ = Role::kOperator;
  std::string joiner_;  // who joins, from the state directory
  std::optional<StateLock> lock_;
  std::string reason_;
};

absl::Status Join::Check() {
  NodeRole role = NodeRole::kScaler;
  if (!FromWord(options_.role, &role) || (role != NodeRole::kWorker && role != NodeRole::kServer)) {
    return absl::InvalidArgumentError(
        fmt::format("--role: expected worker or ps, got '{}'", options_.role));
  }
  MUSTER_RETURN_IF_ERROR_PREPEND(ParseHostPort(options_.master_address).status(), "the master");
  MUSTER_RETURN_IF_ERROR_PREPEND(ParsePortRange(options_.ports).status(), "--ports");
  MUSTER_RETURN_IF_ERROR_PREPEND(CheckCertificates(), "--tls");
  if (role == NodeRole::kServer) {
    if (options_.command.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("a server needs no command after --");
  }
  if (options_.command.empty()) {
    return absl::InvalidArgumentError("a worker needs its trainer: put it after --");
  }
  std::error_code ignored;
  const std::string& root = options_.data_root;
  if (!root.empty() &&
      (!std::filesystem::is_directory(root, ignored) || std::filesystem::is_empty(root, ignored))) {
    return absl::InvalidArgumentError(fmt::format("--data-root: there is nothing in {}", root));
  }
  const char* path = std::getenv("PATH");
  const std::string here = std::filesystem::current_path().string();
  const absl::StatusOr<std::string> trainer = FindProgram(
      options_.command.front(), {.base_directory = here, .path = path == nullptr ? "" : path});
  if (!trainer.ok()) {
    return absl::Status(
        trainer.status().code(),
        fmt::format("there is no program {} in {} or in PATH: correct what is after "
                    "--",
                    options_.command.front(), here));
  }
  trainer_ = *trainer;
  return absl::OkStatus();
}

absl::Status Join::CheckCertificates() {
  if (options_.tls.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const HostPort master, ParseHostPort(options_.master_address));
    if (options_.insecure || IsLoopbackHost(master.host)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the master is on another machine, so this needs the job's certificates. If the job has "
        "spec.security.insecure, say --insecure");
  }
  certificates_ = std::filesystem::absolute(options_.tls).string();
  const Role node = options_.role == ToString(NodeRole::kWorker) ? Role::kWorker : Role::kServer;
  MUSTER_ASSIGN_OR_RETURN(
      const Credentials ours,
      LoadCredentials(CredentialFilesOf(certificates_, node), {"", node}, clock_.Wall()));
  certified_job_ = ours.identity.job_id;
  // A token that can only join needs the node's own certificate. The job's token needs the
  // certificate of an operator.
  const CredentialFiles operators = CredentialFilesOf(certificates_, Role::kOperator);
  if (::access(operators.certificate.c_str(), F_OK) != 0) {
    asks_as_ = node;
    return absl::OkStatus();
  }
  return LoadCredentials(operators, {certified_job_, Role::kOperator}, clock_.Wall()).status();
}

v1::JoinNodeRequest Join::Request() const {
  v1::JoinNodeRequest request;
  request.set_role(options_.role);
  request.set_host(host_name_);
  request.set_joiner(joiner_);
  const bool worker = options_.role == ToString(NodeRole::kWorker);
  request.set_name(options_.name.empty() && worker ? NameOfWorker(host_name_) : options_.name);
  return request;
}

bool Join::SignalWithin(std::chrono::milliseconds time) const {
  pollfd entry{signal_fd_, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(time.count())) > 0;
}

absl::StatusOr<v1::JoinNodeResponse> Join::AskForPlace() {
  const std::unique_ptr<AdminClient> client = Client("", WhenAway::kWait);
  const TimePoint began = clock_.Now();
  bool said = false;
  while (true) {
    absl::StatusOr<v1::JoinNodeResponse> place = client->JoinNode(Request());
    if (place.ok() || !IsUnreachable(place.status())) return place;
    if (!std::exchange(said, true)) {
      Log(LogLevel::kWarning,
          "waiting for the master. Does the job run, is {} the address of its master, and does a "
          "firewall let this machine reach it?{} {}",
          options_.master_address,
          certificates_.empty() ? " If the job has TLS, it also needs --tls." : "",
          Message(place.status()));
    }
    if (clock_.Now() - began > std::chrono::seconds(options_.patience_s)) return place;
    if (SignalWithin(kAskAgain)) return absl::CancelledError("stopped by a signal");
  }
}

NodeCommand Join::CommandOf(const v1::JoinNodeResponse& place) const {
  NodeCommand command{.name = place.node(),
                      .command = {},
                      .environment = {},
                      .working_directory = std::filesystem::current_path().string()};
  if (options_.role == ToString(NodeRole::kWorker)) {
    command.command = options_.command;
    command.command.front() = trainer_;
    command.slot_file = state_.SlotOf(place.node());
    command.environment = {{"MUSTER_MASTER", options_.master_address},
                           {"MUSTER_NODE", place.node()},
                           {"MUSTER_SLOT_FILE", command.slot_file},
                           {"MUSTER_JOB_ID", place.job_id()}};
    NameCredentials(certificates_, &command.environment);
    if (!options_.data_root.empty()) {
      const std::string here = std::filesystem::absolute(options_.data_root).string();
      command.environment["MUSTER_DATA_ROOT"] = place.data_root() + "=" + here;
    }
    return command;
  }
  command.command = {OwnProgram(),
                     "ps",
                     "--name",
                     place.node(),
                     "--master",
                     options_.master_address,
                     "--socket-directory",
                     state_.run(),
                     "--threads",
                     std::to_string(place.server_threads()),
                     "--drain-timeout",
                     std::to_string((place.drain_timeout_ms() + 999) / 1000),
                     "--job-id",
                     place.job_id(),
                     "--ports",
                     options_.ports};
  const auto add = [&command](const char* flag, const std::string& value) {
    if (!value.empty()) command.command.insert(command.command.end(), {flag, value});
  };
  add("--tls", certificates_);
  add("--address", options_.address);
  add("--advertise", options_.advertise);
  add("--snapshot-root", options_.snapshot_root.empty()
                             ? ""
                             : std::filesystem::absolute(options_.snapshot_root).string());
  if (options_.insecure) command.command.emplace_back("--insecure");
  return command;
}

absl::StatusOr<JoinRunner::End> Join::RunPlace(const v1::JoinNodeResponse& place) {
  Log(LogLevel::kInfo, "joined the job '{}' as {}", place.job(), place.node());
  int life[2];
  if (::pipe2(life, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  // The writing end stays open in this process alone. When it is closed, the node ends, however
  // this process dies.
  const OwnedFd life_read(life[0]);
  const OwnedFd life_write(life[1]);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalHost> host,
                          LocalHost::Open({.program = OwnProgram(),
                                           .log_directory = state_.logs(),
                                           .life_fd = life_read.get(),
                                           .held_fd = lock_->fd(),
                                           .socket_directory = state_.nodes(),
                                           .run_id = "",
                                           .command_of = [&](const std::string&, NodeRole) {
                                             return CommandOf(place);
                                           }}));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FoundNode> found, host->Find());
  for (const FoundNode& node : found) host->Discard(node);
  JoinPlace ours{.node = place.node(),
                 .host = host_name_,
                 .run_id = place.run_id(),
                 .first_start = static_cast<uint32_t>(place.first_start())};
  FromWord(options_.role, &ours.role);
  ours.keeper.restarts = {.crash_loop_exits = place.crash_loop_exits(),
                          .backoff_initial = std::chrono::milliseconds(place.backoff_initial_ms()),
                          .backoff_max = std::chrono::milliseconds(place.backoff_max_ms())};
  ours.keeper.drain_timeout = std::chrono::milliseconds(place.drain_timeout_ms());
  if (ours.role == NodeRole::kServer) {
    // A server may take snapshots before it stops.
    ours.keeper.stop_timeout = ours.keeper.drain_timeout + ours.keeper.stop_timeout;
  }
  MasterLink link(Client(place.job_id(), WhenAway::kWait), place.run_id(), kPollInterval, &clock_);
  const std::unique_ptr<AdminClient> asks = Client(place.job_id(), WhenAway::kFail);
  JoinRunner runner({.place = std::move(ours),
                     .host = host.get(),
                     .link = &link,
                     .clock = &clock_,
                     .signal_fd = signal_fd_,
                     .patience = std::chrono::seconds(options_.patience_s),
                     .ask_run = [&]() -> absl::StatusOr<std::string> {
                       MUSTER_ASSIGN_OR_RETURN(const auto now, asks->JoinNode(Request()));
                       return now.run_id();
                     }});
  const JoinRunner::End end = runner.Run();
  reason_ = runner.reason();
  return end;
}

int Join::Run() {
  if (const absl::Status checked = Check(); !checked.ok()) {
    return PrintError(Message(checked), kExitUsage);
  }
  if (const absl::Status made = state_.Create(); !made.ok()) {
    return PrintError(Message(made), kExitUsage);
  }
  absl::StatusOr<StateLock> lock = StateLock::Acquire(state_);
  if (!lock.ok()) return PrintError(Message(lock.status()), kExitUsage);
  lock_.emplace(*std::move(lock));
  absl::StatusOr<std::string> joiner = LoadOrMakeToken(state_.run() + "/joiner");
  if (!joiner.ok()) return PrintError(Message(joiner.status()), kExitUsage);
  joiner_ = *std::move(joiner);
  while (true) {
    const auto place = AskForPlace();
    if (absl::IsCancelled(place.status())) return kExitSucceeded;
    if (!place.ok()) {
      return PrintError(Message(place.status()),
                        IsUnreachable(place.status()) ? kExitUnreachable : kExitUsage);
    }
    const auto end = RunPlace(*place);
    if (!end.ok()) return PrintError(end.status());
    switch (*end) {
      case JoinRunner::End::kNewRun:
        continue;
      case JoinRunner::End::kJobOver:
        PrintNote(fmt::format("the job '{}' is over", place->job()));
        return kExitSucceeded;
      case JoinRunner::End::kLeft:
        PrintNote(fmt::format("{} has left the job '{}'", place->node(), place->job()));
        return kExitSucceeded;
      case JoinRunner::End::kCrashed:
        return PrintError(fmt::format("{} is given up: {}", place->node(), reason_), kExitFailed);
      case JoinRunner::End::kBadInput:
        return PrintError(
            fmt::format("{} refused to start; see {}", place->node(), state_.LogOf(place->node())),
            kExitUsage);
      case JoinRunner::End::kAway:
        return PrintError(fmt::format("the master at {} was away for more than {} s",
                                      options_.master_address, options_.patience_s),
                          kExitUnreachable);
    }
  }
}

}  // namespace

int JoinCommand(const JoinOptions& options) {
  InitLogging("join", LogLevel::kInfo);
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  return Join(options, signal_fd).Run();
}

}  // namespace muster
