#include "host/processes/cgroup_tree.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <limits>
#include <optional>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::TempDir;

constexpr uint64_t kMiB = 1 << 20;

/// A machine made of plain files: what the kernel would make with a group, the test makes before.
class CgroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& contents) {
    const std::string full = root_.path() + path;
    ASSERT_THAT(MakeDirectories(std::filesystem::path(full).parent_path()), IsOk());
    ASSERT_THAT(WriteFileAtomically(full, contents), IsOk());
  }
  std::string Read(const std::string& path) {
    return ReadFile(root_.path() + path, 10'000).value_or("(nothing)");
  }
  CgroupTree Detect(std::vector<pid_t> movable = {}) {
    return CgroupTree::Detect(
        {.run_id = "r1", .root = root_.path(), .movable = std::move(movable)});
  }

  /// The memory controller in the group /job, the CPU's in the root.
  void MakeV1() {
    Write("/proc/self/mountinfo",
          "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu\n"
          "33 31 0:30 / /cg/cpuacct rw - cgroup cgroup rw,cpuacct\n"
          "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
    Write("/proc/self/cgroup", "4:memory:/job\n2:cpuacct:/\n1:cpu:/\n");
    const std::string node = "/muster-r1/ps-0.1/";
    for (const char* in : {"/cg/memory/job", "/cg/cpu", "/cg/cpuacct"}) {
      Write(in + node + "cgroup.procs", "");
    }
    Write("/cg/memory/job" + node + "memory.limit_in_bytes", "9223372036854771712\n");
    Write("/cg/memory/job" + node + "memory.memsw.limit_in_bytes", "9223372036854771712\n");
    Write("/cg/memory/job" + node + "memory.usage_in_bytes", "104857600\n");
    Write("/cg/memory/job" + node + "memory.max_usage_in_bytes", "115343360\n");
    Write("/cg/memory/job" + node + "memory.stat",
          "cache 5\ntotal_inactive_file 4000000\ntotal_active_file 857600\n");
    Write("/cg/memory/job" + node + "memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    Write("/cg/cpu" + node + "cpu.cfs_period_us", "50000\n");
    Write("/cg/cpu" + node + "cpu.cfs_quota_us", "-1\n");
    Write("/cg/cpu" + node + "cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 5000000\n");
    Write("/cg/cpuacct" + node + "cpuacct.usage", "7000000000\n");
  }

  void MakeV2(const std::string& controllers) {
    Write("/proc/self/mountinfo", "30 23 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("/proc/self/cgroup", "0::/job\n");
    for (const char* in : {"/cg/job/", "/cg/job/muster-r1/"}) {
      Write(std::string(in) + "cgroup.controllers", controllers + "\n");
      Write(std::string(in) + "cgroup.subtree_control", "\n");
    }
    Write("/cg/job/cgroup.procs", "77\n");
    const std::string node = "/cg/job/muster-r1/ps-0.1/";
    Write(node + "cgroup.procs", "");
    Write(node + "memory.max", "max\n");
    Write(node + "memory.swap.max", "max\n");
    Write(node + "memory.oom.group", "0\n");
    Write(node + "memory.current", "104857600\n");
    Write(node + "memory.stat",
          "anon 1\ninactive_file 4000000\nactive_file 800000\nslab_reclaimable 57600\n");
    Write(node + "memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 1\n");
    Write(node + "memory.pressure",
          "some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=9 avg60=0 total=1\n");
    Write(node + "cpu.max", "max 100000\n");
    Write(node + "cpu.stat", "usage_usec 7000000\nnr_throttled 4\nthrottled_usec 5000\n");
  }

  TempDir root_;
};

TEST_F(CgroupTest, Version1) {
  MakeV1();
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kV1);
  EXPECT_EQ(tree.remark(), "");
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  EXPECT_TRUE(group.has_cpu());
  ASSERT_THAT(group.OpenToJoin(), IsOk());
  EXPECT_THAT(group.join_fds(), SizeIs(3));
  const std::string memory = "/cg/memory/job/muster-r1/ps-0.1/memory.";
  const std::string cpu = "/cg/cpu/muster-r1/ps-0.1/cpu.cfs_";

  ASSERT_THAT(group.SetLimits({.memory_bytes = 128 * kMiB, .cpus = 1.5}), IsOk());
  EXPECT_EQ(Read(memory + "limit_in_bytes"), "134217728");
  EXPECT_EQ(Read(memory + "memsw.limit_in_bytes"), "134217728");
  EXPECT_EQ(Read(cpu + "period_us"), "100000");
  EXPECT_EQ(Read(cpu + "quota_us"), "150000");

  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.memory_bytes, 100'000'000u);
  EXPECT_EQ(usage.memory_peak_bytes, 110 * kMiB);
  EXPECT_EQ(usage.memory_limit_bytes, 128 * kMiB);
  EXPECT_EQ(usage.oom_kills, 2u);
  EXPECT_FALSE(usage.limit_reached);
  EXPECT_EQ(usage.cpu, microseconds(7'000'000));
  EXPECT_EQ(usage.throttled, microseconds(5'000));
  EXPECT_EQ(usage.memory_pressure_percent, std::nullopt);

  Write(memory + "max_usage_in_bytes", "134217728\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage full, group.ReadUsage());
  EXPECT_TRUE(full.limit_reached);
  Write("/cg/memory/job/muster-r1/ps-0.1/memory.stat",
        "total_inactive_file 30000000\ntotal_active_file 5000000\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage cached, group.ReadUsage());
  EXPECT_FALSE(cached.limit_reached) << "so much cache would have been dropped first";

  ASSERT_THAT(group.SetLimits({}), IsOk());
  EXPECT_EQ(Read(memory + "limit_in_bytes"), "-1");
  EXPECT_EQ(Read(cpu + "quota_us"), "-1");
}

TEST_F(CgroupTest, AKillAtALimitThatIsRaisedMeanwhileIsForThatLimit) {
  MakeV1();
  const CgroupTree tree = Detect();
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  const std::string memory = "/cg/memory/job/muster-r1/ps-0.1/memory.";
  ASSERT_THAT(group.SetLimits({.memory_bytes = 128 * kMiB}), IsOk());
  ASSERT_THAT(group.SetLimits({.memory_bytes = 192 * kMiB}), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage below, group.ReadUsage());
  EXPECT_EQ(KillOf(below), MemoryKill::kMachine) << "it was at neither of them";
  Write(memory + "max_usage_in_bytes", "201326592\n");
  ASSERT_THAT(group.SetLimits({.memory_bytes = 256 * kMiB}), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage full, group.ReadUsage());
  EXPECT_EQ(full.memory_limit_bytes, 256 * kMiB);
  EXPECT_EQ(KillOf(full), MemoryKill::kKernel);
}

TEST_F(CgroupTest, Version1WithoutSwapAccountAndWithoutCpu) {
  MakeV1();
  std::filesystem::remove(root_.File("cg/memory/job/muster-r1/ps-0.1/memory.memsw.limit_in_bytes"));
  Write("/proc/self/cgroup", "4:memory:/job\n");
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kV1);
  EXPECT_THAT(tree.remark(), HasSubstr("CPU cannot be limited"));
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  EXPECT_FALSE(group.has_cpu());
  EXPECT_THAT(group.SetLimits({.memory_bytes = 128 * kMiB, .cpus = 1}), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.cpu, std::nullopt) << "not known is not 0";
}

TEST_F(CgroupTest, Version2) {
  MakeV2("cpuset cpu io memory pids");
  const CgroupTree tree = Detect();
  ASSERT_EQ(tree.backend(), CgroupBackend::kV2) << tree.remark();
  EXPECT_EQ(Read("/cg/job/cgroup.subtree_control"), "+memory +cpu");
  EXPECT_EQ(Read("/cg/job/muster-r1/cgroup.subtree_control"), "+memory +cpu");
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  ASSERT_THAT(group.OpenToJoin(), IsOk());
  EXPECT_THAT(group.join_fds(), SizeIs(1));
  const std::string node = "/cg/job/muster-r1/ps-0.1/";

  ASSERT_THAT(group.SetLimits({.memory_bytes = 128 * kMiB, .cpus = 0.5}), IsOk());
  EXPECT_EQ(Read(node + "memory.max"), "134217728");
  EXPECT_EQ(Read(node + "memory.swap.max"), "0");
  EXPECT_EQ(Read(node + "memory.oom.group"), "1");
  EXPECT_EQ(Read(node + "cpu.max"), "50000 100000");

  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.memory_bytes, 100'000'000u);
  EXPECT_EQ(usage.memory_peak_bytes, 0u) << "this kernel has no memory.peak";
  EXPECT_EQ(usage.memory_limit_bytes, 128 * kMiB);
  EXPECT_EQ(usage.oom_kills, 1u);
  EXPECT_TRUE(usage.limit_reached);
  EXPECT_EQ(usage.cpu, microseconds(7'000'000));
  EXPECT_EQ(usage.throttled, microseconds(5'000));
  EXPECT_EQ(usage.memory_pressure_percent, 1.25);
  EXPECT_EQ(usage.cpu_pressure_percent, std::nullopt);

  ASSERT_THAT(group.SetLimits({}), IsOk());
  EXPECT_EQ(Read(node + "memory.max"), "max");
  EXPECT_EQ(Read(node + "memory.swap.max"), "max");
  EXPECT_EQ(Read(node + "cpu.max"), "max 100000");
}

TEST_F(CgroupTest, Version2WithoutTheCpuController) {
  MakeV2("memory pids");
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kV2);
  EXPECT_THAT(tree.remark(), HasSubstr("CPU cannot be limited"));
  EXPECT_EQ(Read("/cg/job/cgroup.subtree_control"), "+memory");
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  EXPECT_FALSE(group.has_cpu());
  // The kernel counts time in every group, and says nothing of throttling.
  const std::string stat = "/cg/job/muster-r1/ps-0.1/cpu.stat";
  Write(stat, "usage_usec 7000000\nuser_usec 6000000\nsystem_usec 1000000\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.cpu, microseconds(7'000'000));
  Write(stat, "nr_periods 0\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage silent, group.ReadUsage());
  EXPECT_EQ(silent.cpu, std::nullopt);
}

TEST_F(CgroupTest, Version2ThatIsHandedDownAlreadyIsNotAskedAgain) {
  MakeV2("cpu memory");
  Write("/cg/job/cgroup.subtree_control", "cpu memory pids\n");
  EXPECT_EQ(Detect().backend(), CgroupBackend::kV2);
  EXPECT_EQ(Read("/cg/job/cgroup.subtree_control"), "cpu memory pids\n");
}

/// Version 2 refuses to hand controllers down from a group with processes. /proc/version is a file
/// that can be read and never written.
class CgroupBusyTest : public CgroupTest {
 protected:
  CgroupBusyTest() {
    MakeV2("cpu memory");
    const std::string control = root_.File("cg/job/cgroup.subtree_control");
    std::filesystem::remove(control);
    std::filesystem::create_symlink("/proc/version", control);
    Write("/cg/job/muster.own/cgroup.procs", "");
  }
};

TEST_F(CgroupBusyTest, SaysWhatToDo) {
  const CgroupTree tree = Detect({76, 78});
  EXPECT_EQ(tree.backend(), CgroupBackend::kNone);
  EXPECT_THAT(tree.remark(), HasSubstr("cgroup.subtree_control"));
  EXPECT_THAT(tree.remark(), HasSubstr("Delegate=yes"));
  EXPECT_THAT(tree.Open("ps-0", 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no control groups")));
  EXPECT_EQ(Read("/cg/job/muster.own/cgroup.procs"), "") << "77 belongs to another process";
}

TEST_F(CgroupBusyTest, ItsOwnProcessesMoveAside) {
  Detect({77});
  EXPECT_EQ(Read("/cg/job/muster.own/cgroup.procs"), "77");
}

TEST_F(CgroupTest, AProcessThatWasMovedAsideFindsTheGroupItCameFrom) {
  MakeV2("cpu memory");
  Write("/proc/self/cgroup", "0::/job/muster.own\n");
  EXPECT_EQ(Detect().backend(), CgroupBackend::kV2);
  EXPECT_EQ(Read("/cg/job/cgroup.subtree_control"), "+memory +cpu");
}

TEST_F(CgroupTest, InAHybridVersion1LimitsAndVersion2TellsPressure) {
  MakeV1();
  Write("/proc/self/mountinfo",
        Read("/proc/self/mountinfo") + "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", Read("/proc/self/cgroup") + "0::/\n");
  Write("/cg/unified/cgroup.controllers", "hugetlb\n");
  Write("/cg/unified/muster-r1/ps-0.1/cgroup.procs", "");
  Write("/cg/unified/muster-r1/ps-0.1/memory.pressure", "some avg10=3.50 avg60=0.00\n");
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kV1);
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  ASSERT_THAT(group.OpenToJoin(), IsOk());
  EXPECT_THAT(group.join_fds(), SizeIs(4));
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.memory_pressure_percent, 3.5);
  EXPECT_EQ(usage.cpu, microseconds(7'000'000));
}

TEST_F(CgroupTest, InAHybridWithoutCpuacctVersion2CountsCpu) {
  MakeV1();
  Write("/proc/self/mountinfo",
        Read("/proc/self/mountinfo") + "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", "4:memory:/job\n0::/\n");
  Write("/cg/unified/cgroup.controllers", "\n");
  Write("/cg/unified/muster-r1/ps-0.1/cgroup.procs", "");
  Write("/cg/unified/muster-r1/ps-0.1/cpu.stat", "usage_usec 3000000\nuser_usec 3000000\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, Detect().Open("ps-0", 1));
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage usage, group.ReadUsage());
  EXPECT_EQ(usage.cpu, microseconds(3'000'000));
}

TEST_F(CgroupTest, NothingMounted) {
  EXPECT_THAT(Detect().remark(), HasSubstr("/proc/self/mountinfo"));
  Write("/proc/self/mountinfo", "");
  Write("/proc/self/cgroup", "");
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kNone);
  EXPECT_THAT(tree.remark(), HasSubstr("no memory controller"));
}

TEST_F(CgroupTest, AMountThatCannotBeWrittenIsNamed) {
  MakeV1();
  std::filesystem::remove_all(root_.File("cg/memory/job"));
  Write("/cg/memory/job", "a file");
  const CgroupTree tree = Detect();
  EXPECT_EQ(tree.backend(), CgroupBackend::kNone);
  EXPECT_THAT(tree.remark(), HasSubstr("/cg/memory/job/muster-r1"));
}

TEST_F(CgroupTest, WrongNamesAndNumbers) {
  MakeV1();
  const CgroupTree tree = Detect();
  for (const char* name : {"", "..", "a/b", "a b", ".hidden"}) {
    EXPECT_THAT(tree.Open(name, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
  EXPECT_EQ(CgroupTree::Detect({.run_id = "../x", .root = root_.path()}).backend(),
            CgroupBackend::kNone);
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, tree.Open("ps-0", 1));
  EXPECT_THAT(group.SetLimits({.cpus = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(group.SetLimits({.cpus = std::numeric_limits<double>::infinity()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inf")));
}

TEST_F(CgroupTest, AMemoryLimitBelowWhatIsUsedIsRefused) {
  MakeV1();
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, Detect().Open("ps-0", 1));
  EXPECT_THAT(group.SetLimits({.memory_bytes = 90 * kMiB, .cpus = 1}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("100000000 bytes in use")));
  EXPECT_EQ(Read("/cg/cpu/muster-r1/ps-0.1/cpu.cfs_quota_us"), "-1\n") << "nothing is changed";
}

TEST_F(CgroupTest, ErrorsNameTheFile) {
  MakeV1();
  MUSTER_ASSERT_OK_AND_ASSIGN(Cgroup group, Detect().Open("ps-0", 1));
  Write("/cg/memory/job/muster-r1/ps-0.1/memory.usage_in_bytes", "many\n");
  EXPECT_THAT(group.ReadUsage(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("memory.usage_in_bytes")));
  std::filesystem::remove(root_.File("cg/cpu/muster-r1/ps-0.1/cpu.cfs_quota_us"));
  EXPECT_THAT(group.SetLimits({}), StatusIs(absl::StatusCode::kNotFound, HasSubstr("cfs_quota")));
}

TEST(KillOfTest, OwnLimitOrMachine) {
  EXPECT_EQ(KillOf({}), MemoryKill::kNone);
  EXPECT_EQ(KillOf({.limit_reached = true}), MemoryKill::kNone) << "room was found";
  EXPECT_EQ(KillOf({.oom_kills = 1, .limit_reached = true}), MemoryKill::kKernel);
  EXPECT_EQ(KillOf({.oom_kills = 1}), MemoryKill::kMachine);
}

TEST_F(CgroupTest, AGroupOfAnotherStartIsNotFound) {
  MakeV1();
  const CgroupTree tree = Detect();
  EXPECT_THAT(tree.Open("ps-0", 2), StatusIs(absl::StatusCode::kNotFound, HasSubstr("start 2")));
}

TEST_F(CgroupTest, GroupsOfDeadRunsAreRemoved) {
  MakeV1();
  const CgroupTree tree = Detect();
  // Its memory is in another group, its CPU time is not.
  Write("/proc/self/cgroup", "4:memory:/elsewhere\n2:cpuacct:/\n1:cpu:/\n");
  ASSERT_THAT(MakeDirectories(root_.File("cg/memory/elsewhere")), IsOk());
  std::optional<CgroupTree> live(
      CgroupTree::Detect({.run_id = "live", .root = root_.path(), .movable = {}}));
  for (const char* folder : {"muster-dead/ps-0", "muster-live/ps-0", "other/ps-0"}) {
    for (const char* in : {"cg/memory/job/", "cg/cpu/"}) {
      ASSERT_THAT(MakeDirectories(root_.File(std::string(in) + folder)), IsOk());
    }
  }
  EXPECT_THAT(tree.RemoveDead(), ElementsAre("dead"));
  EXPECT_FALSE(std::filesystem::exists(root_.File("cg/memory/job/muster-dead")));
  EXPECT_TRUE(std::filesystem::exists(root_.File("cg/cpu/muster-live/ps-0")));
  EXPECT_TRUE(std::filesystem::exists(root_.File("cg/cpu/other/ps-0")));
  EXPECT_TRUE(std::filesystem::exists(root_.File("cg/cpu/muster-r1/ps-0.1")));
  EXPECT_THAT(tree.RemoveDead(), IsEmpty());
  live.reset();
  EXPECT_THAT(tree.RemoveDead(), ElementsAre("live"));
}

TEST_F(CgroupTest, TheOwnGroupOfAContainer) {
  EXPECT_THAT(Cgroup::ReadOwnUsage(root_.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("mountinfo")));
  // Version 1 of the memory controller, beside a version 2 that has none.
  Write("/proc/self/mountinfo",
        "30 23 0:26 / /cg/two rw - cgroup2 cgroup2 rw\n"
        "35 31 0:32 /kubepods/box /cg/memory rw - cgroup cgroup rw,memory\n");
  Write("/proc/self/cgroup", "4:memory:/kubepods/box\n0::/\n");
  EXPECT_THAT(Cgroup::ReadOwnUsage(root_.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no control group")));
  Write("/cg/memory/memory.limit_in_bytes", "104857600\n");
  Write("/cg/memory/memory.usage_in_bytes", "50000000\n");
  Write("/cg/memory/memory.max_usage_in_bytes", "104857600\n");
  Write("/cg/memory/memory.stat", "total_inactive_file 5\ntotal_active_file 5\n");
  Write("/cg/memory/memory.oom_control", "oom_kill 2\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage v1, Cgroup::ReadOwnUsage(root_.path()));
  EXPECT_EQ(v1.memory_peak_bytes, 100 * kMiB);
  EXPECT_EQ(v1.memory_limit_bytes, 100 * kMiB);
  EXPECT_EQ(KillOf(v1), MemoryKill::kKernel);
  // Version 2, in a namespace that shows the container's group as "/".
  Write("/cg/two/memory.current", "400\n");
  Write("/cg/two/memory.max", "max\n");
  Write("/cg/two/memory.peak", "900\n");
  Write("/cg/two/memory.stat", "inactive_file 100\n");
  Write("/cg/two/memory.events", "oom 0\noom_kill 0\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(const CgroupUsage v2, Cgroup::ReadOwnUsage(root_.path()));
  EXPECT_EQ(v2.memory_bytes, 300u);
  EXPECT_EQ(v2.memory_peak_bytes, 900u);
  EXPECT_EQ(KillOf(v2), MemoryKill::kNone);
}

}  // namespace
}  // namespace muster
