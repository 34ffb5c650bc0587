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
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "scaler/launcher/exit_status.h"
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
  void Watch();
  void HandleSignals();
  void HandleControl();
  void PumpLog();
  void BeginStop(std::chrono::milliseconds timeout);
  void Report(SuperviseReport report);
  int PollTimeout() const;

  const SuperviseOptions& options_;
  SystemClock clock_;
  int signal_fd_ = -1;
  int log_fd_ = -1;  // the pipe's reading end
  std::optional<RotatingLog> log_;
  pid_t child_ = -1;
  std::optional<ExitStatus> exit_;
  bool parent_died_ = false;
  bool control_open_ = false;
  std::optional<TimePoint> kill_at_;
};

bool Supervision::BecomeReaper() {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = WatchedSignals();
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  ::prctl(PR_SET_PDEATHSIG, kParentDiedSignal);
  control_open_ = options_.control_fd >= 0;
  if (control_open_) ::fcntl(options_.control_fd, F_SETFD, FD_CLOEXEC);
  if (options_.held_fd >= 0) ::fcntl(options_.held_fd, F_SETFD, FD_CLOEXEC);
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
  if (control_open_) ::send(options_.control_fd, &report, sizeof(report), MSG_NOSIGNAL);
}

void Supervision::BeginStop(std::chrono::milliseconds timeout) {
  // The group, not the process alone: a shell passes no signal on to the command that it runs.
  ::kill(-child_, SIGTERM);
  const TimePoint at = clock_.Now() + timeout;
  kill_at_ = kill_at_.has_value() ? std::min(*kill_at_, at) : at;
}

void Supervision::HandleSignals() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == kParentDiedSignal) {
      // Anybody may send the signal; only a new parent shows that the old one is dead.
      parent_died_ |= options_.parent_pid != 0 && ::getppid() != options_.parent_pid;
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

void Supervision::HandleControl() {
  SuperviseCommand command;
  const ssize_t got = ::recv(options_.control_fd, &command, sizeof(command), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof(command)) {  // end of file: the parent is gone
    parent_died_ = true;
    control_open_ = false;
    return;
  }
  if (command.kind == SuperviseCommand::kStop) {
    BeginStop(std::chrono::milliseconds(command.timeout_ms));
  } else {
    ::kill(child_, SIGKILL);
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

void Supervision::Watch() {
  while (!exit_.has_value()) {
    pollfd fds[3] = {{signal_fd_, POLLIN, 0},
                     {control_open_ ? options_.control_fd : -1, POLLIN, 0},
                     {log_fd_, POLLIN, 0}};
    if (::poll(fds, 3, PollTimeout()) < 0 && errno != EINTR) break;
    if (fds[2].revents != 0) PumpLog();
    if (fds[1].revents != 0) HandleControl();
    HandleSignals();
    const bool late = kill_at_.has_value() && clock_.Now() >= *kill_at_;
    if ((parent_died_ || late) && !exit_.has_value()) {
      ::kill(child_, SIGKILL);
      if (late) kill_at_ = clock_.Now() + std::chrono::seconds(1);
      if (parent_died_) return;
    }
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
    Report({.kind = SuperviseReport::kExited, .pid = 0, .signal = 0, .code = code});
    return code;
  }
  WriteLog(fmt::format("{}{} started, pid {}\n", kLogMark, options_.name, child_));
  Report({.kind = SuperviseReport::kStarted, .pid = child_});
  Watch();
  KillDescendants({});
  PumpLog();
  const ExitStatus exit = exit_.value_or(ExitStatus{.signal = SIGKILL});
  Report(
      {.kind = SuperviseReport::kExited, .pid = child_, .signal = exit.signal, .code = exit.code});
  return exit.signal != 0 ? 128 + exit.signal : exit.code;
}

absl::StatusOr<int64_t> ParseNumber(const std::string& flag, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError(fmt::format("supervise: {} {}: not a number", flag, text));
  }
  return value;
}

}  // namespace

int RunSupervise(const SuperviseOptions& options) {
  return Supervision(options).Run();
}

absl::StatusOr<SuperviseOptions> ParseSuperviseArguments(
    const std::vector<std::string>& arguments) {
  SuperviseOptions options;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; i += 2) {
    const std::string& flag = arguments[i];
    if (i + 1 >= arguments.size()) {
      return absl::InvalidArgumentError(fmt::format("supervise: {} needs a value", flag));
    }
    const std::string& value = arguments[i + 1];
    if (flag == "--name") {
      options.name = value;
    } else if (flag == "--log") {
      options.log_path = value;
    } else if (flag == "--cwd") {
      options.working_directory = value;
    } else {
      MUSTER_ASSIGN_OR_RETURN(const int64_t number, ParseNumber(flag, value));
      if (flag == "--control-fd") {
        options.control_fd = static_cast<int>(number);
      } else if (flag == "--held-fd") {
        options.held_fd = static_cast<int>(number);
      } else if (flag == "--parent-pid") {
        options.parent_pid = static_cast<pid_t>(number);
      } else if (flag == "--log-bytes") {
        options.log_bytes_max = static_cast<uint64_t>(number);
      } else if (flag == "--stop-timeout-ms") {
        options.stop_timeout = std::chrono::milliseconds(number);
      } else {
        return absl::InvalidArgumentError(fmt::format("supervise: unknown flag {}", flag));
      }
    }
  }
  if (i + 1 >= arguments.size()) {
    return absl::InvalidArgumentError(
        "supervise: no command; write it after --, as in: muster supervise --name x -- sleep 1");
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  return options;
}

std::vector<std::string> SuperviseArguments(const SuperviseOptions& options) {
  std::vector<std::string> arguments = {"--name",
                                        options.name,
                                        "--control-fd",
                                        std::to_string(options.control_fd),
                                        "--held-fd",
                                        std::to_string(options.held_fd),
                                        "--parent-pid",
                                        std::to_string(options.parent_pid),
                                        "--log",
                                        options.log_path,
                                        "--log-bytes",
                                        std::to_string(options.log_bytes_max),
                                        "--cwd",
                                        options.working_directory,
                                        "--stop-timeout-ms",
                                        std::to_string(options.stop_timeout.count()),
                                        "--"};
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

}  // namespace muster
