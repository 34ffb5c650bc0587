#include "worker_sdk/session/forked_child.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace muster::internal {
namespace {

std::atomic<pid_t> session_process{0};
std::atomic<bool> said{false};

}  // namespace

void HasSession() {
  session_process = ::getpid();
}

bool InForkedChild() {
  const pid_t of_session = session_process.load(std::memory_order_relaxed);
  if (of_session == 0 || of_session == ::getpid()) return false;
  if (!said.exchange(true)) {
    std::fprintf(stderr, "muster: %s\n", std::string(Message(ForkedChildError())).c_str());
  }
  return true;
}

absl::Status ForkedChildError() {
  return absl::FailedPreconditionError(
      "this process was forked from one that has a session, and cannot use it: start processes "
      "with exec (in Python: multiprocessing's start method \"spawn\" or \"forkserver\", or "
      "subprocess), or use threads");
}

}  // namespace muster::internal
