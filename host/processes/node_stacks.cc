#include "host/processes/node_stacks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "host/processes/process_tree.h"
#include "host/stacks/stack_dump.h"

namespace muster {
namespace {

struct Supervisor {
  std::string node;
  bool keeps_descendants = false;  // whose descendants do not belong to the node
};

std::optional<Supervisor> SupervisorOf(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "supervise") return std::nullopt;
  Supervisor supervisor;
  for (size_t i = 2; i + 1 < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "--name") supervisor.node = words[i + 1];
    if (words[i] == "--keep-descendants") supervisor.keeps_descendants = true;
  }
  return supervisor;
}

}  // namespace

std::map<std::string, std::vector<pid_t>> ProcessesOfNodes(pid_t run) {
  std::map<std::string, std::vector<pid_t>> nodes;
  for (const pid_t pid : ProcessesBelow(run)) {
    const std::optional<Supervisor> supervisor = SupervisorOf(CommandLineOf(pid));
    if (!supervisor.has_value() || supervisor->node.empty()) continue;
    std::vector<pid_t> pids = ProcessesBelow(pid);
    if (supervisor->keeps_descendants && !pids.empty()) pids.resize(1);
    if (!pids.empty()) nodes[supervisor->node] = std::move(pids);
  }
  return nodes;
}

absl::Status PrintStacksOf(const std::vector<pid_t>& pids, std::chrono::milliseconds limit,
                           const std::function<void(const std::string& line)>& print) {
  const SystemClock clock;
  const TimePoint until = clock.Now() + limit;
  pid_t child = 0;
  StackDump::State state = StackDump::State::kMore;
  {
    MUSTER_ASSIGN_OR_RETURN(StackDump dump, StackDump::Start(pids, {}));
    child = dump.child();
    while (state == StackDump::State::kMore && clock.Now() < until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.Now());
      pollfd readable{.fd = dump.fd(), .events = POLLIN, .revents = 0};
      ::poll(&readable, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
      state = dump.Take(print);
    }
  }
  // A child that waits in the kernel for ever is left to init.
  ::waitpid(child, nullptr, state == StackDump::State::kMore ? WNOHANG : 0);
  if (state == StackDump::State::kFinished) return absl::OkStatus();
  if (state == StackDump::State::kBroken) return absl::InternalError("the stacks ended early");
  return absl::DeadlineExceededError(
      fmt::format("the stacks took longer than {:g} s: the thread that was printed last probably "
                  "waits in the kernel, where it cannot be held",
                  std::chrono::duration<double>(limit).count()));
}

}  // namespace muster
