#include "host/node_name.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NodeNameTest, NamesOfWorkers) {
  EXPECT_EQ(WorkerName(12), "worker-12");
  EXPECT_EQ(WorkerNumber("worker-12"), 12u);
  for (const char* name :
       {"worker-", "worker-07", "worker-1x", "worker--1", "worker-4294967296", "ps-1", ""}) {
    EXPECT_EQ(WorkerNumber(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace muster
