#include "host/stacks/stacks.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "base/file.h"
#include "host/stacks/stack_dump.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

}  // namespace

/// To be found in a stack; not in an unnamed namespace, nor inlined.
__attribute__((noinline)) void StacksTestDeepInside(int depth, int ready) {
  if (depth == 0) {
    (void)!::write(ready, "x", 1);
    ::pause();
    return;
  }
  StacksTestDeepInside(depth - 1, ready);
  asm volatile("");  // no tail call
}

namespace {

class StacksTest : public ::testing::Test {
 protected:
  StacksTest() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, "deep");
      StacksTestDeepInside(5, ready[1]);
      ::_exit(0);
    }
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    for (const int fd : ready) ::close(fd);
    const std::string stat = "/proc/" + std::to_string(child_) + "/stat";
    while (ReadFile(stat, 4096).value_or("").find(") S ") == std::string::npos) {
      ::poll(nullptr, 0, 1);
    }
  }
  ~StacksTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  static int CountOf(const std::string& what, const std::string& text) {
    int count = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  std::string Stacks(StackLimits limits = {}) {
    std::string text;
    PrintStacks(child_, limits, [&](const std::string& line) { text += line + "\n"; });
    return text;
  }
  /// Of the child after a signal or a stop.
  int WaitStatus(int options) {
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, options), child_);
    return status;
  }

  pid_t child_ = -1;
};

TEST_F(StacksTest, ShowsFunctionsAndLetsRun) {
  const std::string text = Stacks();
  EXPECT_THAT(text, HasSubstr("thread " + std::to_string(child_) + " (deep), sleeping"));
  EXPECT_EQ(CountOf("muster::StacksTestDeepInside(int, int)+0x", text), 6) << text;
  EXPECT_THAT(text, HasSubstr("pause"));
  EXPECT_THAT(text, HasSubstr(" (host_stacks_test)"));
  EXPECT_THAT(text, Not(HasSubstr("no stack")));
  EXPECT_EQ(::waitpid(child_, nullptr, WNOHANG | WUNTRACED), 0) << "it is not stopped";
}

TEST_F(StacksTest, WhatWasStoppedStaysSo) {
  ASSERT_EQ(::kill(child_, SIGSTOP), 0);
  EXPECT_TRUE(WIFSTOPPED(WaitStatus(WUNTRACED)));
  const std::string text = Stacks();
  EXPECT_EQ(CountOf("StacksTestDeepInside", text), 6);
  EXPECT_THAT(text, HasSubstr("(deep), stopped"));
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
  EXPECT_TRUE(WIFCONTINUED(WaitStatus(WCONTINUED)));
}

TEST_F(StacksTest, LongStacksAreCut) {
  const std::string text = Stacks({.frames = 3});
  EXPECT_THAT(text, HasSubstr("#2 "));
  EXPECT_THAT(text, Not(HasSubstr("#3 ")));
  EXPECT_THAT(text, HasSubstr("\n  ...\n"));
}

TEST_F(StacksTest, SaysThatItIsNotAllowed) {
  // Only one may trace a process: here, the parent of who asks.
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child_, 0, 0), 0);
  int lines[2];
  ASSERT_EQ(::pipe(lines), 0);
  const pid_t asking = ::fork();
  if (asking == 0) {
    const std::string text = Stacks();
    (void)!::write(lines[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(lines[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(lines[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  ::close(lines[0]);
  ::waitpid(asking, nullptr, 0);
  EXPECT_THAT(text, HasSubstr("(deep), sleeping"));
  EXPECT_THAT(text, HasSubstr("no stack: Operation not permitted"));
}

TEST_F(StacksTest, SaysThatTheProcessIsGone) {
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  EXPECT_TRUE(WIFSIGNALED(WaitStatus(0)));
  EXPECT_THAT(Stacks(), HasSubstr("no stacks of process " + std::to_string(child_) + ": "));
}

TEST_F(StacksTest, AChildThatBreaksOffLeavesNobodyStopped) {
  std::string text;
  const auto print = [&](const std::string& line) { text += line + "\n"; };
  pid_t asking = -1;
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(StackDump dump, StackDump::Start({child_}, {}));
    asking = dump.child();
    StackDump::State state;
    while ((state = dump.Take(print)) == StackDump::State::kMore) ::poll(nullptr, 0, 1);
    EXPECT_EQ(state, StackDump::State::kFinished);
    EXPECT_THAT(text, HasSubstr("StacksTestDeepInside"));
  }
  EXPECT_EQ(::waitpid(asking, nullptr, 0), asking);
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(StackDump dump, StackDump::Start({child_}, {}));
    asking = dump.child();
    ASSERT_EQ(::kill(asking, SIGKILL), 0);
    EXPECT_EQ(::waitpid(asking, nullptr, 0), asking);
    // As if it had begun to stop the thread.
    ASSERT_EQ(::kill(child_, SIGSTOP), 0);
    EXPECT_TRUE(WIFSTOPPED(WaitStatus(WUNTRACED)));
    EXPECT_EQ(dump.Take(print), StackDump::State::kBroken);
  }
  EXPECT_TRUE(WIFCONTINUED(WaitStatus(WCONTINUED)));
}

}  // namespace
}  // namespace muster
