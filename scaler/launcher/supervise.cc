#include "scaler/launcher/supervise.h"

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
#include "base/status.h"
#include "scaler/core/exit_status.h"
#include "scaler/launcher/log_file.h"
#include "scaler/launcher/process_tree.h"

namespace muster {
namespace {

constexpr int kParentDiedSignal = SIGUSR1;

sigset_t WatchedSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, kParentDiedSignal})
    ::sigaddset(&set, signal);
  return set;
}

/// Runs in the forked child: never returns. `error_fd` takes errno when the command cannot run.
[[noreturn]] void ExecCommand(const SuperviseOptions& options, int log_fd, int error_fd,
                              pid_t supervisor) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(137);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (log_fd >= 0) {
    ::dup2(log_fd, STDOUT_FILENO);
    ::dup2(log_fd, STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& argument : options.command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  if (options.working_directory.empty() || ::chdir(options.working_directory.c_str()) == 0) {
    ::execvp(argv[0], argv.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(error_fd, &error, sizeof(error));
  ::_exit(error == ENOENT ? 127 : 126);
}

/// One supervised command. Single-threaded.
class Supervision {
 public:
  explicit Supervision(const SuperviseOptions& options) : options_(options) {}
  int Run();

 private:
  /// False when the parent is gone already.
  bool BecomeReaper();
  void OpenLog();
  void WriteLog(std::string_view text) {
    if (log_.has_value()) log_->Write(text);
  }
  absl::Status StartCommand();
  /// Until the command has ended or is to be left to its death.
  void Watch();
  /// Until somebody has taken note of the exit.
  void KeepExit();
  /// Waits for something to happen and handles it; false when waiting is not possible.
  bool WaitOnce();
  void HandleSignals();
  void HandleController();
  void AcceptControllers();
  void Obey(const SuperviseCommand& command);
  void PumpLog();
  void BeginStop(std::chrono::milliseconds timeout);
  void Report(SuperviseReport report);
  void SendState();
  int PollTimeout() const;

  const SuperviseOptions& options_;
  SystemClock clock_;
  int signal_fd_ = -1;
  int log_fd_ = -1;         // the pipe's reading end
  int controller_fd_ = -1;  // -1: nobody is there
  std::optional<RotatingLog> log_;
  pid_t child_ = -1;
  std::optional<ExitStatus> exit_;
  SuperviseReport state_;
  bool life_over_ = false;  // of the parent, or as life_fd says
  bool released_ = false;
  std::optional<TimePoint> kill_at_;
};

void CloseOnExec(int fd) {
  if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool Supervision::BecomeReaper() {
  ::setsid();
  if (!options_.keep_descendants) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = WatchedSignals();
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  controller_fd_ = options_.control_fd;
  for (int fd : {options_.control_fd, options_.listen_fd, options_.held_fd, options_.life_fd}) {
    CloseOnExec(fd);
  }
  if (options_.listen_fd >= 0) ::fcntl(options_.listen_fd, F_SETFL, O_NONBLOCK);
  state_.supervisor = ::getpid();
  state_.start = options_.start;
  if (options_.life_fd >= 0) return true;
  ::prctl(PR_SET_PDEATHSIG, kParentDiedSignal);
  // The parent may have died before the death signal was asked for.
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
  ::setpgid(child_, child_);  // both sides do it: whoever comes first
  ::close(error_pipe[1]);
  if (log_pipe[1] >= 0) ::close(log_pipe[1]);
  log_fd_ = log_pipe[0];
  if (log_fd_ >= 0) ::fcntl(log_fd_, F_SETFL, O_NONBLOCK);
  int error = 0;
  ssize_t got;
  do {
    got = ::read(error_pipe[0], &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  ::close(error_pipe[0]);
  if (got == sizeof(error)) {
    return ErrnoStatus(error, fmt::format("cannot execute {}", options_.command.front()));
  }
  return absl::OkStatus();
}

void Supervision::Report(SuperviseReport report) {
  report.supervisor = state_.supervisor;
  report.start = state_.start;
  state_ = report;
  SendState();
}

void Supervision::SendState() {
  // A controller that stands still must not hold up the command.
  const int flags = MSG_NOSIGNAL | (options_.listen_fd >= 0 ? MSG_DONTWAIT : 0);
  if (controller_fd_ >= 0) ::send(controller_fd_, &state_, sizeof(state_), flags);
}

void Supervision::BeginStop(std::chrono::milliseconds timeout) {
  if (exit_.has_value()) return;
  // The group, not the process alone: a shell passes no signal on to the command that it runs.
  ::kill(options_.keep_descendants ? child_ : -child_, SIGTERM);
  const TimePoint at = clock_.Now() + timeout;
  kill_at_ = kill_at_.has_value() ? std::min(*kill_at_, at) : at;
}

void Supervision::HandleSignals() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == kParentDiedSignal) {
      // Anybody may send the signal; only a new parent shows that the old one is dead.
      life_over_ |=
          options_.life_fd < 0 && options_.parent_pid != 0 && ::getppid() != options_.parent_pid;
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
    // The one before is dead, or about to be.
    if (controller_fd_ >= 0) ::close(controller_fd_);
    controller_fd_ = fd;
    SendState();
  }
}

void Supervision::HandleController() {
  SuperviseCommand command;
  const ssize_t got = ::recv(controller_fd_, &command, sizeof(command), MSG_DONTWAIT);
  // A controller that has gone without reading all that it was told resets the connection; what it
  // said before is still there.
  if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) return;
  if (got == sizeof(command)) return Obey(command);
  // End of file. Another controller may come; whoever started this process will not come again.
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
    default:
      if (!exit_.has_value()) ::kill(child_, SIGKILL);
  }
}

void Supervision::PumpLog() {
  char buffer[1 << 16];
  // Bounded, so that a command that never stops writing cannot keep commands from being heard.
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

int Supervision::PollTimeout() const {
  if (!kill_at_.has_value()) return -1;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*kill_at_ - clock_.Now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 3'600'000));
}

bool Supervision::WaitOnce() {
  pollfd fds[5] = {{signal_fd_, POLLIN, 0},
                   {controller_fd_, POLLIN, 0},
                   {log_fd_, POLLIN, 0},
                   {options_.listen_fd, POLLIN, 0},
                   {options_.life_fd, POLLIN, 0}};
  if (::poll(fds, 5, PollTimeout()) < 0) return errno == EINTR;
  if (fds[2].revents != 0) PumpLog();
  if (fds[1].revents != 0) HandleController();
  if (fds[3].revents != 0) AcceptControllers();
  if (fds[4].revents != 0) life_over_ = true;
  HandleSignals();
  return true;
}

void Supervision::Watch() {
  while (!exit_.has_value() && WaitOnce()) {
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

int Supervision::Run() {
  if (!BecomeReaper()) return 137;
  OpenLog();
  if (absl::Status started = StartCommand(); !started.ok()) {
    WriteLog(fmt::format("{}\n", Message(started)));
    if (options_.log_path.empty()) fmt::print(stderr, "{}\n", Message(started));
    KillDescendants({});
    const int code = started.code() == absl::StatusCode::kNotFound ? 127 : 126;
    exit_ = ExitStatus{.signal = 0, .code = code};
    Report({.kind = SuperviseReport::kExited, .pid = 0, .signal = 0, .code = code});
    KeepExit();
    return code;
  }
  WriteLog(fmt::format("{}{} started, pid {}\n", kLogMark, options_.name, child_));
  Report({.kind = SuperviseReport::kStarted, .pid = child_});
  Watch();
  if (!options_.keep_descendants) KillDescendants({});
  PumpLog();
  exit_ = exit_.value_or(ExitStatus{.signal = SIGKILL});
  Report({.kind = SuperviseReport::kExited,
          .pid = child_,
          .signal = exit_->signal,
          .code = exit_->code});
  KeepExit();
  return exit_->signal != 0 ? 128 + exit_->signal : exit_->code;
}

}  // namespace

int RunSupervise(const SuperviseOptions& options) {
  return Supervision(options).Run();
}

}  // namespace muster
