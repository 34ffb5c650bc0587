#include "host/stacks/stack_dump.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kTextMax = 1 << 20;
/// The last byte that a child writes when it has finished.
constexpr char kEnd = '\0';

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

[[noreturn]] void PrintAll(const std::vector<pid_t>& pids, const StackLimits& limits, int fd,
                           pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const pid_t pid : pids) {
    WriteAll(fd, fmt::format("process {}\n", pid));
    PrintStacks(pid, limits, [fd](const std::string& line) { WriteAll(fd, line + "\n"); });
  }
  WriteAll(fd, {&kEnd, 1});
  ::_exit(0);
}

bool IsStopped(pid_t pid) {
  const absl::StatusOr<std::string> stat = ReadFile(fmt::format("/proc/{}/stat", pid), kTextMax);
  const size_t after_name = stat.ok() ? stat->rfind(") ") : std::string::npos;
  return after_name != std::string::npos && (*stat)[after_name + 2] == 'T';
}

}  // namespace

absl::StatusOr<StackDump> StackDump::Start(std::vector<pid_t> pids, const StackLimits& limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  std::vector<pid_t> stopped;
  std::copy_if(pids.begin(), pids.end(), std::back_inserter(stopped), IsStopped);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) PrintAll(pids, limits, ends[1], self);
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return ErrnoStatus(error, "cannot fork");
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return StackDump(std::move(pids), std::move(stopped), child, ends[0]);
}

StackDump::StackDump(std::vector<pid_t> pids, std::vector<pid_t> stopped_before, pid_t child,
                     int fd)
    : pids_(std::move(pids)),
      stopped_before_(std::move(stopped_before)),
      child_(child),
      process_(OpenProcess(child)),
      output_(fd) {}

StackDump::~StackDump() {
  if (finished_) return;
  if (process_.get() >= 0) SignalProcess(process_, SIGKILL);
  for (const pid_t pid : pids_) {
    const auto& before = stopped_before_;
    if (std::find(before.begin(), before.end(), pid) == before.end()) ::kill(pid, SIGCONT);
  }
}

StackDump::State StackDump::Take(const std::function<void(const std::string& line)>& print) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return State::kMore;
    bytes_ += static_cast<size_t>(got);
    if (got == 0 || bytes_ > kTextMax) return State::kBroken;
    line_.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1)) {
      print(line_.substr(0, end));
    }
    if (line_ == std::string_view(&kEnd, 1)) {
      finished_ = true;
      return State::kFinished;
    }
  }
}

}  // namespace muster
