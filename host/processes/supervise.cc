#include "host/processes/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/status.h"
#include "host/exit_status.h"
#include "host/messages.h"
#include "host/processes/cgroup.h"
#include "host/processes/exec_command.h"
#include "host/processes/log_file.h"
#include "host/processes/process_tree.h"
#include "host/processes/spawn.h"
#include "host/processes/tree_usage.h"
#include "host/stacks/stack_dump.h"

namespace muster {
namespace {

constexpr int kParentDiedSignal = SIGUSR1;
constexpr std::chrono::seconds kDumpTimeout{10};
/// Stacks are dumped for at most this many processes. If a trainer has more, the rest is left out.
constexpr size_t kDumpProcesses = 16;

sigset_t WatchedSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, kParentDiedSignal})
    ::sigaddset(&set, signal);
  return set;
}

/// One supervised command. Single-threaded.
class Supervision {
 public:
  explicit Supervision(const SuperviseOptions& options) : options_(options) {
    state_.grouped = options.cgroup_fds.empty() ? 0 : 1;
    if (state_.grouped == 0) memory_.set_limit(options.memory_limit_bytes);
  }
  SuperviseReport Run();

 private:
  /// False if the parent is already gone.
  bool BecomeReaper();
  void OpenLog();
  void WriteLog(std::string_view text);
  /// Writes a line of our own. It begins a new line even if the command has not ended its last one.
  void WriteOwnLine(std::string_view text);
  absl::Status StartCommand();
  /// Continues although the command is not in its control groups.
  void GoWithoutGroups(const absl::Status& why);
  /// Runs until the command has ended, or until this process cannot wait for its death.
  void Watch();
  /// Runs until a controller has released the exit.
  void KeepExit();
  /// Waits for an event and handles it. False if it cannot wait.
  bool WaitOnce();
  void HandleSignals();
  void HandleController();
  void AcceptControllers();
  void Obey(const SuperviseCommand& command);
  /// If a check of memory is due, kills the command if it is above its limit.
  void WatchMemory();
  void PumpLog();
  void BeginDump();
  void TakeDump();
  void BeginStop(std::chrono::milliseconds timeout);
  void Report(SuperviseReport report);
  void SendState();
  bool LooksAtMemory() const {
    return memory_.limit_bytes() > 0 && !exit_.has_value() && !own_kill_;
  }
  int PollTimeout() const;

  const SuperviseOptions& options_;
  SystemClock clock_;
  int signal_fd_ = -1;
  int log_fd_ = -1;         // the pipe's reading end
  int controller_fd_ = -1;  // -1: no controller
  std::optional<RotatingLog> log_;
  pid_t child_ = -1;
  std::optional<ExitStatus> exit_;
  SuperviseReport state_;
  bool life_over_ = false;  // the parent is gone, or the pipe of life_fd is closed
  bool released_ = false;
  std::optional<TimePoint> kill_at_;
  MemoryWatch memory_;
  TimePoint look_at_;  // time of the next check of memory
  bool own_kill_ = false;
  std::optional<StackDump> dump_;
  TimePoint dump_until_;
};

/// Closes all descriptors except the named ones, and sets close-on-exec on those.
void TakeDescriptors(const SuperviseOptions& options) {
  std::vector<int> named = {options.control_fd, options.listen_fd, options.held_fd,
                            options.life_fd};
  for (const auto* fds : {&options.pass_fds, &options.cgroup_fds}) {
    named.insert(named.end(), fds->begin(), fds->end());
  }
  CloseOthers(named);
  for (const int fd : named) SetCloseOnExec(fd, true);
}

bool Supervision::BecomeReaper() {
  ::setsid();
  TakeDescriptors(options_);
  if (!options_.keep_descendants) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = WatchedSignals();
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  controller_fd_ = options_.control_fd;
  if (options_.listen_fd >= 0) ::fcntl(options_.listen_fd, F_SETFL, O_NONBLOCK);
  state_.supervisor = ::getpid();
  state_.start = options_.start;
  if (options_.life_fd >= 0) return true;
  ::prctl(PR_SET_PDEATHSIG, kParentDiedSignal);
  // The parent may have died before the parent-death signal was set.
  return options_.parent_pid == 0 || ::getppid() == options_.parent_pid;
}

void Supervision::OpenLog() {
  if (options_.log_path.empty()) return;
  absl::StatusOr<RotatingLog> log = RotatingLog::Open(options_.log_path, options_.log_bytes_max);
  if (log.ok()) {
    log_.emplace(*std::move(log));
  } else {
    fmt::print(stderr, "muster supervise {}: {}\n", options_.name, Message(log.status()));
  }
}

void Supervision::WriteLog(std::string_view text) {
  if (log_.has_value()) log_->Write(text, clock_.Wall());
  while (options_.copy_fd >= 0 && !text.empty()) {
    const ssize_t written = ::write(options_.copy_fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads it
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void Supervision::WriteOwnLine(std::string_view text) {
  WriteLog(fmt::format("{}{}\n", log_.has_value() && log_->within_line() ? "\n" : "", text));
}

absl::Status Supervision::StartCommand() {
  int log_pipe[2] = {-1, -1};
  int error_pipe[2] = {-1, -1};
  if (!options_.log_path.empty() && ::pipe2(log_pipe, O_CLOEXEC) != 0) {
    return ErrnoStatus(errno, "cannot create a pipe");
  }
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  // Nodes never read the terminal.
  if (const int null = ::open("/dev/null", O_RDONLY); null >= 0) {
    ::dup2(null, STDIN_FILENO);
    if (null != STDIN_FILENO) ::close(null);
  }
  const pid_t self = ::getpid();
  child_ = ::fork();
  if (child_ < 0) return ErrnoStatus(errno, "cannot fork");
  if (child_ == 0) ExecCommand(options_, log_pipe[1], error_pipe[1], self);
  ::setpgid(child_, child_);  // both processes call it, because either may be first
  ::close(error_pipe[1]);
  if (log_pipe[1] >= 0) ::close(log_pipe[1]);
  log_fd_ = log_pipe[0];
  if (log_fd_ >= 0) ::fcntl(log_fd_, F_SETFL, O_NONBLOCK);
  absl::Status status;
  ExecError error;
  while (true) {
    const ssize_t got = ::read(error_pipe[0], &error, sizeof(error));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(error)) break;
    if (error.what == ExecError::kGroup) {
      GoWithoutGroups(ToStatus(error, options_));
    } else {
      status = ToStatus(error, options_);
    }
  }
  ::close(error_pipe[0]);
  return status;
}

void Supervision::GoWithoutGroups(const absl::Status& why) {
  WriteOwnLine(fmt::format("{}{}: its memory is checked ten times a second; its CPU is not limited",
                           kLogAside, Message(why)));
  state_.grouped = 0;
  memory_.set_limit(options_.memory_limit_bytes);
}

void Supervision::Report(SuperviseReport report) {
  report.supervisor = state_.supervisor;
  report.start = state_.start;
  report.own_kill = own_kill_ ? 1 : 0;
  report.grouped = state_.grouped;
  state_ = report;
  SendState();
}

void Supervision::SendState() {
  state_.memory_peak_bytes = memory_.peak_bytes();
  state_.memory_limit_bytes = memory_.limit_bytes();
  // A stopped controller must not block the command.
  const int flags = MSG_NOSIGNAL | (options_.listen_fd >= 0 ? MSG_DONTWAIT : 0);
  if (controller_fd_ >= 0) ::send(controller_fd_, &state_, sizeof(state_), flags);
}

void Supervision::BeginStop(std::chrono::milliseconds timeout) {
  if (exit_.has_value()) return;
  // Signals the whole group, because a shell does not forward signals to the command that it runs.
  ::kill(options_.keep_descendants ? child_ : -child_, SIGTERM);
  const TimePoint at = clock_.Now() + timeout;
  kill_at_ = kill_at_.has_value() ? std::min(*kill_at_, at) : at;
}

void Supervision::HandleSignals() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == kParentDiedSignal) {
      // Any process may send this signal, so only a new parent proves that the old one is dead.
      life_over_ |=
          options_.life_fd < 0 && options_.parent_pid != 0 && ::getppid() != options_.parent_pid;
    } else if (signal == SIGQUIT) {
      BeginDump();
    } else if (signal != SIGCHLD) {
      BeginStop(options_.stop_timeout);
    }
  }
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    if (pid == child_) exit_ = FromWaitStatus(status);
  }
}

void Supervision::AcceptControllers() {
  while (true) {
    const int fd = ::accept4(options_.listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (!IsOfOurUser(fd)) {
      WriteOwnLine(fmt::format("{}a connection of another user was refused", kLogAside));
      ::close(fd);
      continue;
    }
    // The former controller is dead, or about to die.
    if (controller_fd_ >= 0) ::close(controller_fd_);
    controller_fd_ = fd;
    SendState();
  }
}

void Supervision::HandleController() {
  SuperviseCommand command;
  const ssize_t got = ::recv(controller_fd_, &command, sizeof(command), MSG_DONTWAIT);
  // If a controller ends before it has read all reports, the connection is reset. Its earlier
  // messages can still be read.
  if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) return;
  if (got == sizeof(command)) return Obey(command);
  // This is end of file. With a listening socket, another controller may connect; with a single
  // control socket, none can.
  if (options_.listen_fd < 0) life_over_ = true;
  ::close(controller_fd_);
  controller_fd_ = -1;
}

void Supervision::Obey(const SuperviseCommand& command) {
  switch (command.kind) {
    case SuperviseCommand::kStop:
      BeginStop(std::chrono::milliseconds(command.timeout_ms));
      return;
    case SuperviseCommand::kRelease:
      released_ = true;
      return;
    case SuperviseCommand::kDumpStacks:
      BeginDump();
      return;
    case SuperviseCommand::kLimitMemory:
      memory_.set_limit(command.memory_limit_bytes);
      SendState();
      return;
    case SuperviseCommand::kKill:
      if (!exit_.has_value()) ::kill(child_, SIGKILL);
      return;
    default:  // not one of our orders
      return;
  }
}

void Supervision::BeginDump() {
  if (exit_.has_value() || dump_.has_value() || !log_.has_value()) return;
  std::vector<pid_t> pids = {child_};
  if (!options_.keep_descendants) pids = ProcessesBelow(::getpid());
  const size_t count = pids.size();
  pids.resize(std::min(count, kDumpProcesses));
  WriteOwnLine(fmt::format("{}stacks of {} were requested: {} of its {} processes", kLogAside,
                           options_.name, pids.size(), count));
  absl::StatusOr<StackDump> dump = StackDump::Start(std::move(pids), {});
  if (!dump.ok()) {
    WriteOwnLine(fmt::format("{}{}", kLogAside, Message(dump.status())));
    return;
  }
  dump_.emplace(*std::move(dump));
  dump_until_ = clock_.Now() + kDumpTimeout;
}

void Supervision::TakeDump() {
  if (!dump_.has_value()) return;
  const StackDump::State state = dump_->Take(
      [this](const std::string& line) { WriteOwnLine(fmt::format("{}{}", kLogAside, line)); });
  const bool late = clock_.Now() >= dump_until_;
  if (state == StackDump::State::kMore && !late) return;
  dump_.reset();
  const std::string_view end = state == StackDump::State::kFinished ? "end of the stacks"
                               : state == StackDump::State::kBroken ? "the stacks ended early"
                                                                    : "the stacks took too long";
  WriteOwnLine(fmt::format("{}{}", kLogAside, end));
}

void Supervision::PumpLog() {
  char buffer[1 << 16];
  // Bounded, so that orders are still read if the command never stops writing.
  for (int round = 0; round < 32 && log_fd_ >= 0; ++round) {
    const ssize_t got = ::read(log_fd_, buffer, sizeof(buffer));
    if (got > 0) {
      WriteLog({buffer, static_cast<size_t>(got)});
    } else if (got == 0) {
      ::close(log_fd_);
      log_fd_ = -1;
    } else if (errno != EINTR) {
      return;
    }
  }
}

void Supervision::WatchMemory() {
  if (!LooksAtMemory() || clock_.Now() < look_at_) return;
  const pid_t own = dump_.has_value() ? dump_->child() : 0;
  bool exceeded = memory_.IsExceeded(::getpid(), own);
  if (exceeded && controller_fd_ >= 0) {
    // An order for a higher limit may have arrived.
    HandleController();
    exceeded = memory_.IsExceeded(::getpid(), own);
  }
  if (exceeded) {
    WriteOwnLine(
        fmt::format("{}{} is killed: it uses {} bytes of memory, more than its limit of {}",
                    kLogAside, options_.name, memory_.peak_bytes(), memory_.limit_bytes()));
    ::kill(child_, SIGKILL);
    own_kill_ = true;
  }
  look_at_ = clock_.Now() + MemoryWatch::kInterval;
}

int Supervision::PollTimeout() const {
  std::optional<TimePoint> next = kill_at_;
  if (LooksAtMemory()) next = std::min(next.value_or(look_at_), look_at_);
  if (dump_.has_value()) next = std::min(next.value_or(dump_until_), dump_until_);
  if (!next.has_value()) return -1;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*next - clock_.Now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 3'600'000));
}

bool Supervision::WaitOnce() {
  pollfd fds[6] = {
      {signal_fd_, POLLIN, 0},       {controller_fd_, POLLIN, 0},
      {log_fd_, POLLIN, 0},          {options_.listen_fd, POLLIN, 0},
      {options_.life_fd, POLLIN, 0}, {dump_.has_value() ? dump_->fd() : -1, POLLIN, 0}};
  if (::poll(fds, 6, PollTimeout()) < 0) return errno == EINTR;
  if (fds[2].revents != 0) PumpLog();
  TakeDump();
  if (fds[1].revents != 0) HandleController();
  if (fds[3].revents != 0) AcceptControllers();
  if (fds[4].revents != 0) life_over_ = true;
  HandleSignals();
  return true;
}

void Supervision::Watch() {
  while (!exit_.has_value() && WaitOnce()) {
    WatchMemory();
    const bool late = kill_at_.has_value() && clock_.Now() >= *kill_at_;
    if ((life_over_ || late) && !exit_.has_value()) {
      ::kill(child_, SIGKILL);
      if (late) kill_at_ = clock_.Now() + std::chrono::seconds(1);
      if (life_over_) return;
    }
  }
}

void Supervision::KeepExit() {
  kill_at_.reset();
  if (options_.listen_fd < 0) return;
  while (!released_ && !life_over_ && WaitOnce()) {
  }
}

SuperviseReport Supervision::Run() {
  if (!BecomeReaper()) return {.kind = SuperviseReport::kExited, .signal = SIGKILL};
  OpenLog();
  if (absl::Status started = StartCommand(); !started.ok()) {
    WriteOwnLine(Message(started));
    if (options_.log_path.empty()) fmt::print(stderr, "{}\n", Message(started));
    KillDescendants({});
    const int code = started.code() == absl::StatusCode::kNotFound ? 127 : 126;
    exit_ = ExitStatus{.signal = 0, .code = code};
    Report({.kind = SuperviseReport::kExited,
            .pid = 0,
            .signal = 0,
            .code = code,
            .shortage = IsShortage(started) ? 1u : 0u});
    KeepExit();
    return state_;
  }
  WriteOwnLine(fmt::format("{}{} started, pid {}", kLogMark, options_.name, child_));
  Report({.kind = SuperviseReport::kStarted, .pid = child_});
  Watch();
  dump_.reset();
  if (!options_.keep_descendants) KillDescendants({});
  PumpLog();
  exit_ = exit_.value_or(ExitStatus{.signal = SIGKILL});
  Report({.kind = SuperviseReport::kExited,
          .pid = child_,
          .signal = exit_->signal,
          .code = exit_->code});
  KeepExit();
  return state_;
}

}  // namespace

SuperviseReport Supervise(const SuperviseOptions& options) {
  return Supervision(options).Run();
}

}  // namespace muster
