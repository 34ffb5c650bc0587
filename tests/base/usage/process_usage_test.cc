#include "base/usage/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace muster {
namespace {

class ProcessUsageTest : public ::testing::Test {
 protected:
  ProcessUsageTest() {
    Put("proc/self/cgroup", "0::/\n");
    Put("proc/self/status", "Name:\tx\nVmHWM:\t    900 kB\nRssAnon:\t 300 kB\nRssShmem:\t 40 kB\n");
    Parent(Self(), 7);
    Parent(7, 1);
    Parent(1, 0);
    Put("group/memory.current", "5000\n");
    Put("group/memory.stat", "anon 1\ninactive_file 1000\nactive_file 200\nslab_reclaimable 30\n");
    Put("group/memory.peak", "6000\n");
    Put("group/memory.max", "max\n");
    Put("group/cpu.stat", "usage_usec 77\nthrottled_usec 5\n");
    Members({Self(), 7, 1});
  }
  static uint64_t Self() { return static_cast<uint64_t>(::getpid()); }
  void Put(const std::string& path, const std::string& contents) {
    const std::filesystem::path full = directory_.path() + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << contents;
  }
  void Parent(uint64_t pid, uint64_t parent) {
    const std::string number = std::to_string(pid);
    Put("proc/" + number + "/stat", number + " (a ) 9) S " + std::to_string(parent) + " 3 4\n");
  }
  void Members(const std::vector<uint64_t>& pids) {
    std::string lines;
    for (const uint64_t pid : pids) lines += std::to_string(pid) + "\n";
    Put("group/cgroup.procs", lines);
  }
  ProcessUsage Read() {
    return ProcessUsageMeter(directory_.path() + "/proc", directory_.path() + "/group").Read({});
  }
  bool OfGroup() { return Read().cpu_us == 77; }

  testing::TempDir directory_;
};

TEST_F(ProcessUsageTest, OfAContainer) {
  EXPECT_EQ(Read(), (ProcessUsage{.cpu_us = 77,
                                  .throttled_us = 5,
                                  .memory_bytes = 5000 - 1230,
                                  .memory_peak_bytes = 6000,
                                  .memory_limit_bytes = 0}));
  Put("group/memory.max", "8000\n");
  EXPECT_EQ(Read().memory_limit_bytes, 8000u);
}

TEST_F(ProcessUsageTest, ChildrenAreItsOwnAndStrangersAreNot) {
  Parent(20, Self());
  Parent(21, 20);
  Members({Self(), 7, 1, 20, 21, 22});
  EXPECT_TRUE(OfGroup()) << "22 has ended";
  Parent(22, 1);
  EXPECT_FALSE(OfGroup()) << "22 is a neighbour";
  Members({Self(), 0});
  EXPECT_FALSE(OfGroup()) << "of somebody outside";
}

TEST_F(ProcessUsageTest, AGroupOfAMachineIsNotItsOwn) {
  Put("proc/self/cgroup", "0::/user.slice/session-1.scope\n");
  EXPECT_FALSE(OfGroup());
  Put("proc/self/cgroup", "0::/\n");
  EXPECT_TRUE(OfGroup());
  Put("group/memory.current", "");
  EXPECT_FALSE(OfGroup()) << "the root of a machine counts no memory";
}

TEST_F(ProcessUsageTest, OfTheProcessAlone) {
  Put("proc/self/cgroup", "");
  const ProcessUsage usage = Read();
  EXPECT_EQ(usage.memory_bytes, 340u * 1024);
  EXPECT_EQ(usage.memory_peak_bytes, 900u * 1024);
  EXPECT_GT(usage.cpu_us, 0u);
}

TEST_F(ProcessUsageTest, OnceASecondAtMostAndAPeakNeverFalls) {
  ProcessUsageMeter meter(directory_.path() + "/proc", directory_.path() + "/group");
  const TimePoint begin(std::chrono::seconds(5));
  meter.Read(begin);
  Put("group/cpu.stat", "usage_usec 99\n");
  Put("group/memory.peak", "");
  EXPECT_EQ(meter.Read(begin + std::chrono::milliseconds(999)).cpu_us, 77u);
  EXPECT_EQ(meter.Read(begin + std::chrono::seconds(1)).cpu_us, 99u);
  EXPECT_EQ(meter.Read(begin + std::chrono::seconds(1)).memory_peak_bytes, 6000u);
}

TEST(OwnProcessUsageTest, ThisProcessUsesMemoryAndCpu) {
  const ProcessUsage usage = ProcessUsageMeter().Read({});
  EXPECT_GT(usage.memory_bytes, 0u);
  EXPECT_GE(usage.memory_peak_bytes, usage.memory_bytes);
  EXPECT_GT(usage.cpu_us, 0u);
}

}  // namespace
}  // namespace muster
