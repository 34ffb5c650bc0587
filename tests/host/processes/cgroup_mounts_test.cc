#include "host/processes/cgroup_mounts.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(CgroupMountsTest, BothVersionsAmongOtherMounts) {
  const std::vector<CgroupMount> mounts = ParseCgroupMounts(
      "23 28 0:21 / /proc rw,relatime shared:5 - proc proc rw\n"
      "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
      "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n"
      "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "41 31 0:38 / /mnt/with\\040blank rw - cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_THAT(mounts, SizeIs(3));
  EXPECT_FALSE(mounts[0].v2);
  EXPECT_EQ(mounts[0].point, "/sys/fs/cgroup/memory");
  EXPECT_THAT(mounts[0].options, Contains("memory"));
  EXPECT_EQ(mounts[1].root, "/docker/ab");
  EXPECT_THAT(mounts[1].options, ElementsAre("rw", "cpu", "cpuacct"));
  EXPECT_TRUE(mounts[2].v2);
  EXPECT_EQ(mounts[2].point, "/mnt/with blank");
}

TEST(CgroupMountsTest, LinesThatAreNoneArePassedOver) {
  EXPECT_THAT(ParseCgroupMounts(""), IsEmpty());
  EXPECT_THAT(ParseCgroupMounts("nonsense\n- cgroup cgroup rw\n1 2 3 4 5 6 - cgroup\n"), IsEmpty());
  EXPECT_THAT(ParseOwnCgroups("\nnonsense\n12\n3:cpu\n"), IsEmpty());
}

TEST(CgroupMountsTest, OwnGroups) {
  EXPECT_THAT(
      ParseOwnCgroups("4:memory:/a/b\n2:cpu,cpuacct:/c:d\n9:name=systemd:/\n0::/user\n"),
      UnorderedElementsAre(Pair("memory", "/a/b"), Pair("cpu", "/c:d"), Pair("cpuacct", "/c:d"),
                           Pair("name=systemd", "/"), Pair("", "/user")));
}

TEST(CgroupMountsTest, FoldersOfGroups) {
  const CgroupMount whole{.root = "/", .point = "/sys/fs/cgroup/memory"};
  EXPECT_EQ(CgroupFolder(whole, "/"), "/sys/fs/cgroup/memory");
  EXPECT_EQ(CgroupFolder(whole, "/a/b"), "/sys/fs/cgroup/memory/a/b");
  const CgroupMount part{.root = "/docker/ab", .point = "/m"};
  EXPECT_EQ(CgroupFolder(part, "/docker/ab"), "/m");
  EXPECT_EQ(CgroupFolder(part, "/docker/ab/c"), "/m/c");
  EXPECT_EQ(CgroupFolder(whole, "/../other"), "/sys/fs/cgroup/memory");
}

}  // namespace
}  // namespace muster
