#include "host/processes/tree_usage.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/processes/process_tree.h"

namespace muster {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

/// A child that fills 64 MiB, and two children of it that share them; nothing else.
class TreeUsageTest : public ::testing::Test {
 protected:
  TreeUsageTest() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) BeFamily(ready[1]);
    char byte;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    for (const int fd : ready) ::close(fd);
  }
  ~TreeUsageTest() override {
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  [[noreturn]] static void BeFamily(int ready) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    void* const memory =
        ::mmap(nullptr, 64 * kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t i = 0; i < 64 * kMebibyte; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
    if (::fork() > 0) ::fork();
    rusage usage{};
    do {
      ::getrusage(RUSAGE_SELF, &usage);
    } while (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 50'000);
    (void)!::write(ready, "x", 1);
    while (true) ::pause();
  }

 protected:
  pid_t child_ = -1;
};

TEST_F(TreeUsageTest, OneProcessAlone) {
  const absl::StatusOr<TreeUsage> usage = ReadProcessUsage(child_);
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->memory_bytes, 64 * kMebibyte);
  EXPECT_LT(usage->memory_bytes, 2 * 64 * kMebibyte) << "without its children";
  EXPECT_GE(usage->cpu, std::chrono::milliseconds(40)) << "in ticks of 10 ms";
  EXPECT_TRUE(absl::IsNotFound(ReadProcessUsage(-1).status()));
}

TEST_F(TreeUsageTest, SharedPagesCountOnceWhenItMatters) {
  EXPECT_EQ(ProcessesBelow(::getpid()).size(), 3u);
  const TreeUsage usage = ReadTreeUsage(::getpid());
  EXPECT_GE(usage.memory_bytes, 3 * 64 * kMebibyte);
  EXPECT_GE(usage.cpu, std::chrono::milliseconds(120)) << "in ticks of 10 ms";
  EXPECT_GE(ReadTreeMemory(::getpid()), 64 * kMebibyte);
  EXPECT_LT(ReadTreeMemory(::getpid()), 128 * kMebibyte);
  EXPECT_EQ(ReadTreeUsage(child_).memory_bytes / (64 * kMebibyte), 2u) << "its children";
}

TEST_F(TreeUsageTest, AWatchKnowsSharedPages) {
  MemoryWatch watch;
  EXPECT_FALSE(watch.IsExceeded(::getpid())) << "no limit";
  watch.set_limit(128 * kMebibyte);
  EXPECT_FALSE(watch.IsExceeded(::getpid()));
  watch.set_limit(32 * kMebibyte);
  EXPECT_TRUE(watch.IsExceeded(::getpid()));
  EXPECT_GE(watch.peak_bytes(), 64 * kMebibyte);
}

TEST_F(TreeUsageTest, AnOrphanThatEndedCounts) {
  // The orphan becomes our child, as it becomes one of `supervise`, and we wait for it.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const TreeUsage before = ReadTreeUsage(::getpid());
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (::fork() == 0) {
      rusage usage{};
      do {
        ::getrusage(RUSAGE_SELF, &usage);
      } while (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 200'000);
    }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  pid_t orphan = -1;
  for (const pid_t pid : ProcessesBelow(::getpid())) {
    const std::optional<ProcessStat> stat = ReadStat(pid);
    if (pid != child_ && stat.has_value() && stat->parent == ::getpid()) orphan = pid;
  }
  ASSERT_GT(orphan, 0);
  ASSERT_EQ(::waitpid(orphan, nullptr, 0), orphan);
  EXPECT_GE(ReadTreeUsage(::getpid()).cpu - before.cpu, std::chrono::milliseconds(190));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace muster
