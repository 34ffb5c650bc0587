#include "scaler/core/orders.h"

#include <gtest/gtest.h>

namespace muster::scaler {
namespace {

TEST(OrdersTest, NamesAndTargets) {
  struct Row {
    Order order;
    std::string action, target;
  };
  for (const Row& row : {Row{RelaunchNode{.node = "ps-0"}, "relaunch", "ps-0"},
                         {LimitNode{.node = "ps-0"}, "set-limits", "ps-0"},
                         {ScaleWorkers{2}, "set-workers", "workers"},
                         {EndNode{"worker-1"}, "drain", "worker-1"},
                         {DumpStacks{"ps-1"}, "dump-stacks", "ps-1"},
                         {FailJob{"why"}, "stop-job", "job"},
                         {SetPaused{"hang", true}, "pause-policy", "hang"},
                         {SetPaused{"hang", false}, "resume-policy", "hang"},
                         {DrainJob{}, "drain", "job"},
                         {CancelJob{}, "cancel", "job"},
                         {RetryShards{{"0/0/1"}}, "retry-shards", "job"}}) {
    EXPECT_EQ(ActionName(row.order), row.action);
    EXPECT_EQ(TargetOf(row.order), row.target);
    EXPECT_EQ(IsMasters(row.order), row.order.index() >= 7);
  }
}

TEST(OrdersTest, LimitsThatAreNotNamedStay) {
  const Resources before{.cpus = 2, .memory_bytes = 512};
  const LimitNode memory{.node = "ps-0", .memory_bytes = 1024};
  EXPECT_EQ(memory.After(before), (Resources{.cpus = 2, .memory_bytes = 1024}));
  EXPECT_EQ(LimitNode::To("ps-0", {.cpus = 1}).After(before), (Resources{.cpus = 1}));
}

}  // namespace
}  // namespace muster::scaler
