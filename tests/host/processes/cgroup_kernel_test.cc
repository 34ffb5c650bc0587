#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/descriptors.h"
#include "host/processes/cgroup_tree.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Control groups as this machine's kernel has them.
namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

constexpr uint64_t kMiB = 1 << 20;

/// A pipe whose ends are closed by hand.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe(ends) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    ::close(read);
    ::close(write);
  }
  void Send() const { (void)!::write(write, "x", 1); }
  void Wait() const {
    char byte;
    (void)!::read(read, &byte, 1);
  }
};

/// Touches so much memory and keeps it. In the child: no allocator, no exceptions.
void Fill(uint64_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(9);
  for (uint64_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
}

/// Burns so much CPU time, however long it takes.
void Burn(int64_t milliseconds) {
  rusage usage{};
  do {
    ::getrusage(RUSAGE_SELF, &usage);
  } while (usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 +
               usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000 <
           milliseconds);
}

class CgroupKernelTest : public ::testing::Test {
 protected:
  CgroupKernelTest() : tree_(CgroupTree::Detect(Options("test"))) {}
  ~CgroupKernelTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (tree_.backend() != CgroupBackend::kNone) {
      EXPECT_THAT(tree_.Remove(), IsOk());
    }
  }
  void SetUp() override {
    if (tree_.backend() == CgroupBackend::kNone) {
      GTEST_SKIP() << "control groups cannot be made here: " << tree_.remark();
    }
  }
  static CgroupTree::Options Options(const std::string& what) {
    return {.run_id = what + "-" + std::to_string(::getpid()), .movable = {::getpid()}};
  }

  /// Runs `body` in a child inside of `group`.
  template <typename Body>
  void Start(Cgroup& group, Body body) {
    ASSERT_THAT(group.OpenToJoin(), IsOk());
    const std::vector<int> fds = group.join_fds();
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      if (JoinCgroup(fds.data(), fds.size()) != 0) ::_exit(8);
      body();
      ::_exit(0);
    }
  }
  /// As above, one that waits, and owns nothing.
  void StartWaiting(Cgroup& group) {
    Pipe ready;
    Start(group, [&] {
      // The locks of others are open in it, too.
      CloseOthers({ready.write});
      ready.Send();
      while (true) ::pause();
    });
    ready.Wait();
  }
  /// How the child ended: an exit code, or minus a signal.
  int End() {
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  CgroupUsage Usage(const Cgroup& group) {
    const absl::StatusOr<CgroupUsage> usage = group.ReadUsage();
    EXPECT_THAT(usage, IsOk());
    return usage.value_or(CgroupUsage{});
  }

  CgroupTree tree_;
  pid_t child_ = -1;
};

TEST_F(CgroupKernelTest, AKillForMemoryIsCounted) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  ASSERT_THAT(group.SetLimits({.memory_bytes = 32 * kMiB}), IsOk());
  Start(group, [] { Fill(256 * kMiB); });
  EXPECT_EQ(End(), -SIGKILL);
  const CgroupUsage usage = Usage(group);
  EXPECT_EQ(usage.oom_kills, 1u);
  EXPECT_EQ(KillOf(usage), MemoryKill::kKernel);
  EXPECT_EQ(usage.memory_limit_bytes, 32 * kMiB);
  if (usage.memory_peak_bytes > 0) {
    EXPECT_GT(usage.memory_peak_bytes, 30 * kMiB);
  }
}

TEST_F(CgroupKernelTest, AnyOtherKillIsNot) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  ASSERT_THAT(group.SetLimits({.memory_bytes = 32 * kMiB}), IsOk());
  Pipe ready;
  Start(group, [&] {
    Fill(8 * kMiB);
    ready.Send();
    while (true) ::pause();
  });
  ready.Wait();
  EXPECT_GE(Usage(group).memory_bytes, 8 * kMiB);
  EXPECT_THAT(group.Remove(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("still has processes")));
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  EXPECT_EQ(End(), -SIGKILL);
  EXPECT_EQ(Usage(group).oom_kills, 0u);
}

TEST_F(CgroupKernelTest, AFileThatIsReadTwiceIsNoNeed) {
  testing::TempDir folder;
  struct statfs of{};
  ASSERT_EQ(::statfs(folder.path().c_str(), &of), 0);
  if (of.f_type == TMPFS_MAGIC) GTEST_SKIP() << folder.path() << " is in memory";
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("worker-0", 1));
  const std::string path = folder.File("data");
  Pipe ready;
  Start(group, [&] {
    static char block[1 << 16];
    // Page cache is its who touched it first.
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 512; ++i) (void)!::write(fd, block, sizeof(block));
    ::fsync(fd);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 512; ++i) (void)!::pread(fd, block, sizeof(block), i * 65536L);
    }
    ready.Send();
    while (true) ::pause();
  });
  ready.Wait();
  const CgroupUsage usage = Usage(group);
  EXPECT_LT(usage.memory_bytes, 16 * kMiB);
  if (usage.memory_peak_bytes > 0) {
    EXPECT_GE(usage.memory_peak_bytes, 30 * kMiB);
  }
}

TEST_F(CgroupKernelTest, ALimitRaisedInPlaceLetsItLive) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  ASSERT_THAT(group.SetLimits({.memory_bytes = 32 * kMiB}), IsOk());
  Pipe ready, go;
  Start(group, [&] {
    Fill(16 * kMiB);
    ready.Send();
    go.Wait();
    Fill(100 * kMiB);
    ready.Send();
    go.Wait();
  });
  ready.Wait();
  ASSERT_THAT(group.SetLimits({.memory_bytes = 256 * kMiB}), IsOk());
  go.Send();
  ready.Wait();
  EXPECT_THAT(group.SetLimits({.memory_bytes = 64 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  EXPECT_THAT(group.SetLimits({.memory_bytes = 192 * kMiB}), IsOk());
  go.Send();
  EXPECT_EQ(End(), 0);
  const CgroupUsage usage = Usage(group);
  EXPECT_EQ(usage.oom_kills, 0u);
  EXPECT_EQ(usage.memory_limit_bytes, 192 * kMiB);
}

TEST_F(CgroupKernelTest, AQuotaThrottlesAndIsLifted) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  if (!group.has_cpu()) GTEST_SKIP() << tree_.remark();
  ASSERT_THAT(group.SetLimits({.cpus = 0.05}), IsOk());
  Start(group, [] { Burn(100); });
  EXPECT_EQ(End(), 0);
  const CgroupUsage usage = Usage(group);
  EXPECT_GT(usage.throttled.count(), 0);
  EXPECT_GE(usage.cpu, std::chrono::microseconds(50'000));
  ASSERT_THAT(group.SetLimits({}), IsOk());
  Start(group, [] { Burn(200); });
  EXPECT_EQ(End(), 0);
  EXPECT_EQ(Usage(group).throttled, usage.throttled);
}

TEST_F(CgroupKernelTest, ARestartedScalerFindsTheGroup) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  ASSERT_THAT(group.SetLimits({.memory_bytes = 32 * kMiB}), IsOk());
  const CgroupTree again = CgroupTree::Detect(Options("test"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Cgroup found, again.Open("ps-0", 1));
  EXPECT_EQ(Usage(found).memory_limit_bytes, 32 * kMiB);
}

TEST_F(CgroupKernelTest, ANewLifeBeginsAtZero) {
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
  ASSERT_THAT(group.SetLimits({.memory_bytes = 32 * kMiB}), IsOk());
  Start(group, [] { Fill(256 * kMiB); });
  EXPECT_EQ(End(), -SIGKILL);
  EXPECT_EQ(Usage(group).oom_kills, 1u);
  for (const uint32_t start : {1u, 2u}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const Cgroup next, tree_.Make("ps-0", start));
    const CgroupUsage usage = Usage(next);
    EXPECT_EQ(usage.oom_kills, 0u);
    EXPECT_FALSE(usage.limit_reached);
    EXPECT_EQ(usage.memory_limit_bytes, 0u);
  }
  EXPECT_THAT(tree_.Open("ps-0", 1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0")));
}

TEST_F(CgroupKernelTest, ANewLifeMeetsNothingOfAFormerOne) {
  for (const uint32_t start : {1u, 2u}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree_.Make("ps-0", 1));
    StartWaiting(group);
    EXPECT_THAT(tree_.Make("ps-0", start), IsOk());
    EXPECT_EQ(End(), -SIGKILL);
  }
}

TEST_F(CgroupKernelTest, GroupsOfADeadRunAreRemovedWithWhatIsLeftInThem) {
  std::optional<CgroupTree> dead(CgroupTree::Detect(Options("dead")));
  const std::string id = Options("dead").run_id;
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, dead->Make("worker-0", 1));
    StartWaiting(group);
    EXPECT_THAT(tree_.RemoveDead(), Not(Contains(id)));
    dead.reset();
    EXPECT_THAT(tree_.RemoveDead(), Not(Contains(id))) << "the node's group has an owner";
  }
  EXPECT_EQ(::kill(child_, 0), 0);
  EXPECT_THAT(tree_.RemoveDead(), Contains(id));
  EXPECT_EQ(End(), -SIGKILL);
}

}  // namespace
}  // namespace muster
