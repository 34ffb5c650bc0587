#include "worker_sdk/readers/data_root.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

TEST(DataRootTest, PathsBelowTheFolderMove) {
  EXPECT_EQ(PathHere("/jobs/a=/mnt/a", "/jobs/a/data/x.csv"), "/mnt/a/data/x.csv");
  EXPECT_EQ(PathHere("/jobs/a/=/mnt/a/", "/jobs/a/x.csv"), "/mnt/a/x.csv");
}

TEST(DataRootTest, OthersStay) {
  EXPECT_EQ(PathHere("/jobs/a=/mnt/a", "/jobs/abc/x.csv"), "/jobs/abc/x.csv");
  EXPECT_EQ(PathHere("/jobs/a=/mnt/a", "/other/x.csv"), "/other/x.csv");
  EXPECT_EQ(PathHere("", "/jobs/a/x.csv"), "/jobs/a/x.csv");
  EXPECT_EQ(PathHere("nothing", "/jobs/a/x.csv"), "/jobs/a/x.csv");
  EXPECT_EQ(PathHere("=/mnt", "/jobs/a/x.csv"), "/jobs/a/x.csv");
}

}  // namespace
}  // namespace muster::sdk
