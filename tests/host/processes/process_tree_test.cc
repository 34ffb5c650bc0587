#include "host/processes/process_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

/// A child of the same program, and below it one of another; the first says what its family is.
class ProcessTreeTest : public ::testing::Test {
 protected:
  ProcessTreeTest() {
    int answer[2];
    EXPECT_EQ(::pipe2(answer, O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) BeChild(answer[1]);
    ::close(answer[1]);
    pid_t pid = 0;
    EXPECT_EQ(::read(answer[0], &other_, sizeof(other_)), static_cast<ssize_t>(sizeof(other_)));
    while (::read(answer[0], &pid, sizeof(pid)) == sizeof(pid) && pid != 0) family_.push_back(pid);
    ::close(answer[0]);
  }
  ~ProcessTreeTest() override {
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
  pid_t other_ = -1;
  std::vector<pid_t> family_;

 private:
  static void Say(int fd, pid_t pid) { (void)!::write(fd, &pid, sizeof(pid)); }
  [[noreturn]] static void BeChild(int answer) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int begun[2];
    if (::pipe2(begun, O_CLOEXEC) != 0) ::_exit(1);
    const pid_t other = ::fork();
    if (other == 0) {
      ::execlp("sleep", "sleep", "1000", nullptr);
      ::_exit(1);
    }
    // End of file: it is another program now.
    char byte;
    ::close(begun[1]);
    (void)!::read(begun[0], &byte, 1);
    Say(answer, other);
    for (const pid_t pid : RunFamily()) Say(answer, pid);
    Say(answer, 0);
    while (true) ::pause();
  }
};

TEST_F(ProcessTreeTest, AFamilyBeginsWithTheTopmostOfTheSameProgram) {
  EXPECT_EQ(family_.front(), ::getpid());
  EXPECT_THAT(family_, Contains(child_));
  EXPECT_THAT(family_, Contains(other_)) << "what the program started";
  EXPECT_THAT(family_, Not(Contains(::getppid())));
}

TEST_F(ProcessTreeTest, Below) {
  EXPECT_THAT(ProcessesBelow(::getpid()), ElementsAre(child_, other_));
  EXPECT_THAT(ProcessesBelow(other_), IsEmpty());
}

TEST_F(ProcessTreeTest, Stat) {
  const std::optional<ProcessStat> stat = ReadStat(other_);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, child_);
  EXPECT_NE(stat->state, 'Z');
  ::kill(-child_, SIGKILL);
  ASSERT_EQ(::waitpid(child_, nullptr, 0), child_);
  EXPECT_FALSE(ReadStat(child_).has_value());
}

/// Begins and ends children, until it is killed.
[[noreturn]] void Churn() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
  }
}

TEST_F(ProcessTreeTest, ProcessesThatVanishWhileTheyAreReadAreLeftOut) {
  const pid_t churn = ::fork();
  if (churn == 0) Churn();
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(ProcessesBelow(::getpid()), IsSupersetOf({child_, other_, churn}));
    EXPECT_THAT(Descendants({}), IsSupersetOf({child_, other_, churn}));
    EXPECT_FALSE(IsSupervisor(churn));
  }
  KillDescendants({.pids = {child_}});
  EXPECT_EQ(::waitpid(churn, nullptr, WNOHANG), -1) << "killed and reaped";
  EXPECT_TRUE(ReadStat(other_).has_value()) << "spared, as its parent is";
}

TEST_F(ProcessTreeTest, AProcessWithoutTheMarkIsSpared) {
  KillDescendants({.mark = "MUSTER_STARTED_BY=nobody"});
  EXPECT_TRUE(ReadStat(child_).has_value());
  EXPECT_TRUE(ReadStat(other_).has_value());
}

TEST(ProcessWordsTest, AProcessHasTheWordsThatItWasStartedWith) {
  int life[2], started[2];
  ASSERT_EQ(::pipe2(life, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(started, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(life[0], STDIN_FILENO);
    const char* arguments[] = {"sh", "-c", "read line", "", nullptr};
    const char* environment[] = {"EMPTY=", "A=b c", nullptr};
    ::execve("/bin/sh", const_cast<char**>(arguments), const_cast<char**>(environment));
    ::_exit(127);
  }
  ::close(life[0]);
  ::close(started[1]);
  char none = 0;
  EXPECT_EQ(::read(started[0], &none, 1), 0) << "it is the other program now";
  EXPECT_THAT(CommandLineOf(pid), ElementsAre("sh", "-c", "read line", ""));
  EXPECT_THAT(EnvironmentOf(pid), ElementsAre("EMPTY=", "A=b c"));
  ::close(life[1]);
  ::close(started[0]);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_THAT(CommandLineOf(pid), IsEmpty());
  EXPECT_THAT(EnvironmentOf(pid), IsEmpty());
}

}  // namespace
}  // namespace muster
