#include "host/processes/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using muster::testing::IsOk;

class MachineTest : public ::testing::Test {
 protected:
  MachineTest() { Write("/proc/meminfo", "MemTotal:   1024 kB\nMemFree: 1 kB\n"); }
  void Write(const std::string& path, const std::string& text) {
    const std::string full = folder_.path() + path;
    ASSERT_THAT(MakeDirectories(full.substr(0, full.rfind('/'))), IsOk());
    ASSERT_THAT(WriteFileAtomically(full, text), IsOk());
  }
  Resources Read() { return MachineResources(folder_.path()); }

  testing::TempDir folder_;
};

TEST_F(MachineTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(Read().memory_bytes, uint64_t{1} << 20);
  EXPECT_GE(Read().cpus, 1);
}

TEST_F(MachineTest, IdleTimeIsThatOfOurProcessors) {
  EXPECT_EQ(MachineIdle(folder_.path()), std::nullopt);
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
  const auto tick = std::chrono::microseconds(1'000'000 / ::sysconf(_SC_CLK_TCK));
  std::string stat = "cpu  9 9 9 999999 9 9 9 0 0 0\n";
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    // Those that are not ours are idle without end.
    const bool ours = CPU_ISSET(number, &own);
    stat += fmt::format("cpu{} 1 2 3 {} {} 6 7 0 0 0\n", number, ours ? 40 : 1'000'000, 2);
  }
  Write("/proc/stat", stat + "intr 1 2 3\nctxt 5\n");
  EXPECT_EQ(MachineIdle(folder_.path()), CPU_COUNT(&own) * 42 * tick);
}

TEST_F(MachineTest, ATableOfZerosTellsNothing) {
  std::string stat;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    stat += fmt::format("cpu{} 0 0 0 0 0 0 0 0 0 0\n", number);
  }
  Write("/proc/stat", stat);
  EXPECT_EQ(MachineIdle(folder_.path()), std::nullopt);
  Write("/proc/stat", "cpu0 1 2\ncpux\ncpu\n");
  EXPECT_EQ(MachineIdle(folder_.path()), std::nullopt);
}

TEST_F(MachineTest, AGroupAboveAllowsLess) {
  Write("/proc/self/mountinfo", "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", "0::/box/job\n");
  Write("/cg/box/memory.max", "500000\n");
  Write("/cg/box/job/memory.max", "max\n");
  Write("/cg/box/job/cpu.max", "25000 100000\n");
  EXPECT_EQ(Read().memory_bytes, 500'000u);
  EXPECT_EQ(Read().cpus, 0.25);
}

TEST_F(MachineTest, VersionOneHasTwoHierarchies) {
  Write("/proc/self/mountinfo",
        "1 2 0:3 / /cg/memory rw - cgroup cgroup rw,memory\n"
        "1 2 0:3 / /cg/cpu rw - cgroup cgroup rw,cpu\n");
  Write("/proc/self/cgroup", "2:memory:/box\n1:cpu:/\n");
  Write("/cg/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/cg/memory/memory.limit_in_bytes", "600000\n");
  Write("/cg/cpu/cpu.cfs_quota_us", "50000\n");
  Write("/cg/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read().memory_bytes, 600'000u);
  EXPECT_EQ(Read().cpus, 0.5);
}

TEST_F(MachineTest, WithoutAQuotaProcessorsAreWhatThereIs) {
  Write("/proc/self/mountinfo", "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", "0::/\n");
  Write("/cg/cpu.max", "max 100000\n");
  EXPECT_GE(Read().cpus, 1);
}

}  // namespace
}  // namespace muster
