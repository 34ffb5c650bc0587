#include "scaler/service/scaler_main.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "scaler/admin/admin_client.h"
#include "scaler/admin/master_link.h"
#include "scaler/core/plan.h"
#include "scaler/launcher/log_file.h"
#include "scaler/launcher/node_launcher.h"
#include "scaler/launcher/slot.h"
#include "scaler/service/plan_file.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kPollInterval{250};
constexpr std::chrono::milliseconds kTickInterval{100};
constexpr std::chrono::milliseconds kDeadline{2'000};
constexpr uint32_t kLastWordsLines = 20;
constexpr uint64_t kLastWordsBytes = 4'000;
/// A process that a killed scaler was just about to start holds its lock for a moment.
constexpr int kLockTries = 25;
constexpr std::chrono::milliseconds kLockPause{20};

std::string PlanPath(const ScalerOptions& options) {
  return options.directory + "/plan.json";
}

/// Carries out what the keeper decides, and feeds it. Belongs to the main thread.
class Scaler {
 public:
  Scaler(const ScalerOptions& options, const Clock* clock, NodeLauncher launcher, Adoption adoption)
      : options_(options),
        clock_(clock),
        launcher_(std::move(launcher)),
        keeper_(options.keeper, adoption.plan),
        link_(MakeAdminClient(options.master_address, options.job, kDeadline, WhenAway::kWait),
              options.run_id, kPollInterval, clock) {
    for (const std::string& node : adoption.died) {
      PushExit({.node = node,
                .kind = ProcessReport::Kind::kExited,
                .pid = 0,
                .exit = {.signal = SIGKILL}});
    }
  }

  KeeperOutcome Run() {
    while (!keeper_.outcome().has_value()) {
      Beat();
      Carry(Tick{});
      while (!events_.empty()) {
        const KeeperEvent event = std::move(events_.front());
        events_.pop_front();
        Carry(event);
      }
      if (!keeper_.outcome().has_value()) Wait();
    }
    return *keeper_.outcome();
  }

 private:
  void Beat() {
    const uint64_t one = 1;
    if (options_.beat_fd < 0) return;
    [[maybe_unused]] const ssize_t written = ::write(options_.beat_fd, &one, sizeof(one));
  }

  void Wait() {
    std::vector<int> wake_fds = {link_.wake_fd()};
    if (options_.signal_fd >= 0) wake_fds.push_back(options_.signal_fd);
    for (const ProcessReport& report : launcher_.Wait(kTickInterval, wake_fds)) Handle(report);
    signalfd_siginfo info;
    while (options_.signal_fd >= 0 &&
           ::read(options_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
      Log(LogLevel::kInfo, "signal {}: ending every node", info.ssi_signo);
      events_.push_back(StopWanted{});
    }
    for (const MasterLink::Answer& answer : link_.TakeAnswers()) {
      events_.push_back(MasterAnswered{ToView(answer.status), answer.asked_at});
    }
    const uint64_t over = link_.reports_over();
    while (!untold_.empty() && untold_.begin()->first <= over) {
      events_.push_back(ExitHeard{untold_.begin()->second});
      untold_.erase(untold_.begin());
    }
  }

  void Handle(const ProcessReport& report) {
    if (report.kind == ProcessReport::Kind::kExited) return PushExit(report);
    events_.push_back(NodeStarted{report.node, static_cast<uint64_t>(report.pid)});
  }

  void PushExit(const ProcessReport& report) {
    const Plan plan = keeper_.plan();
    const NodePlan& node = plan.nodes.at(report.node);
    events_.push_back(NodeExited{
        .node = report.node,
        // Who was killed before it could speak to this process has spoken to one before.
        .pid = report.pid != 0 ? static_cast<uint64_t>(report.pid) : node.pid,
        .exit = report.exit,
        .slot = ReadSlot(options_.command_of(report.node, node.role).slot_file),
        .last_words = LastWords(launcher_.LogPath(report.node), kLastWordsLines, kLastWordsBytes)});
  }

  void Carry(const KeeperEvent& event) {
    const std::vector<KeeperEffect> effects = keeper_.Step(event, clock_->Now());
    SavePlan();
    for (const KeeperEffect& effect : effects) {
      std::visit([this](const auto& e) { Do(e); }, effect);
    }
  }

  /// A full disk must not keep nodes from being started again: their sockets say what runs, and the
  /// plan is written as soon as it can be.
  void SavePlan() {
    Plan plan = keeper_.plan();
    if (saved_ == plan) return;
    const absl::Status written = WritePlan(PlanPath(options_), plan);
    if (written.ok()) {
      saved_ = std::move(plan);
    } else if (!std::exchange(save_failed_, true)) {
      Log(LogLevel::kError, "{}", Message(written));
    }
    if (written.ok()) save_failed_ = false;
  }

  void Do(const StartNode& effect) {
    NodeCommand command = options_.command_of(effect.node, effect.role);
    if (effect.role == NodeRole::kWorker) {
      command.environment["MUSTER_START"] = std::to_string(effect.start);
    }
    const absl::Status status = launcher_.Start(command, effect.start);
    if (status.ok()) return;
    Log(LogLevel::kError, "{}", Message(status));
    events_.push_back(NodeExited{.node = effect.node,
                                 .pid = 0,
                                 .exit = {.signal = 0, .code = 126},
                                 .slot = std::nullopt,
                                 .last_words = std::string(Message(status)) + "\n"});
  }
  void Do(const StopNode& effect) { launcher_.Stop(effect.node, effect.timeout); }
  void Do(const KillNode& effect) { launcher_.Kill(effect.node); }
  void Do(const ReleaseNode& effect) { launcher_.Release(effect.node); }
  void Do(const AskCancel& effect) { link_.AskFail(effect.reason); }
  void Do(const Note& effect) { Log(LogLevel::kInfo, "{}", effect.text); }
  void Do(const TellMaster& effect) {
    const uint64_t number = link_.Tell(effect);
    if (effect.exited) untold_.emplace(number, effect.node);
  }

  const ScalerOptions& options_;
  const Clock* const clock_;
  NodeLauncher launcher_;
  NodeKeeper keeper_;
  MasterLink link_;
  std::deque<KeeperEvent> events_;
  std::map<uint64_t, std::string> untold_;  // exits by the numbers of their reports
  std::optional<Plan> saved_;
  bool save_failed_ = false;
};

/// The plan of an earlier scaler of this run; a new one when there is none.
Plan FormerPlan(const ScalerOptions& options) {
  const std::string path = PlanPath(options);
  absl::StatusOr<Plan> plan = ReadPlan(path);
  if (plan.ok() && plan->run_id == options.run_id) return *std::move(plan);
  if (!plan.ok() && !absl::IsNotFound(plan.status())) {
    Log(LogLevel::kError, "{}; nodes that run are found without it", Message(plan.status()));
  }
  return NewPlan(options.run_id, options.servers, options.workers);
}

absl::StatusOr<int> TakeLock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  for (int tries = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno == EWOULDBLOCK && tries < kLockTries) {
      SleepFor(kLockPause);
      continue;
    }
    const int error = errno;
    ::close(fd);
    return ErrnoStatus(error, fmt::format("cannot lock {}: does another scaler run here?", path));
  }
  return fd;
}

}  // namespace

absl::StatusOr<KeeperOutcome> RunScaler(const ScalerOptions& options, const Clock* clock) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(options.directory));
  MUSTER_ASSIGN_OR_RETURN(const int lock, TakeLock(options.directory + "/lock"));
  absl::Cleanup unlock = [lock] { ::close(lock); };
  MUSTER_ASSIGN_OR_RETURN(NodeLauncher launcher,
                          NodeLauncher::Open({.program = options.program,
                                              .log_directory = options.log_directory,
                                              .socket_directory = options.socket_directory,
                                              .life_fd = options.life_fd,
                                              .held_fd = options.held_fd}));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FoundNode> found, launcher.Find());
  Adoption adoption = Adopt(FormerPlan(options), found);
  for (const FoundNode& node : adoption.stale) launcher.Discard(node);
  for (const auto& [name, node] : adoption.plan.nodes) {
    if (!launcher.attached(name)) continue;
    Log(LogLevel::kInfo, "{} is there already, start {}", name, node.starts);
  }
  Scaler scaler(options, clock, std::move(launcher), std::move(adoption));
  return scaler.Run();
}

}  // namespace muster::scaler
