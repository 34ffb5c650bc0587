#include "scaler/model/orders.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster::scaler {
namespace {

TEST(OrdersTest, NamesAndTargets) {
  struct Row {
    Order order;
    std::string action, target;
    bool masters = false;
  };
  for (const Row& row : {Row{RestartNode{.node = "ps-0"}, "restart", "ps-0"},
                         {ResizeNode{.node = "ps-0"}, "resize", "ps-0"},
                         {ScaleWorkers{2}, "scale", "workers"},
                         {EndNode{"worker-1"}, "drain", "worker-1"},
                         {DumpStacks{"ps-1"}, "dump-stacks", "ps-1"},
                         {FailJob{"why"}, "stop-job", "job"},
                         {SetPaused{"hang", true}, "pause-policy", "hang"},
                         {SetPaused{"hang", false}, "resume-policy", "hang"},
                         {DrainJob{}, "drain", "job", true},
                         {CancelJob{}, "cancel", "job", true},
                         {RetryShards{{"0/0/1"}}, "retry-shards", "job", true}}) {
    EXPECT_EQ(ActionName(row.order), row.action);
    EXPECT_EQ(TargetOf(row.order), row.target);
    EXPECT_EQ(IsMasters(row.order), row.masters) << row.action;
    EXPECT_EQ(AboutAction(row.action).name, row.action);
  }
}

TEST(OrdersTest, EveryActionIsKnownOnce) {
  std::set<std::string_view> names;
  for (const ActionAbout& about : AllActions()) {
    EXPECT_TRUE(names.insert(about.name).second) << about.name;
  }
  EXPECT_EQ(names.size(), std::variant_size_v<Order>) << "two drain, one pauses and resumes";
  EXPECT_EQ(AboutAction("dance").name, "");
}

TEST(OrdersTest, LimitsThatAreNotNamedStay) {
  const Resources before{.cpus = 2, .memory_bytes = 512};
  const ResizeNode memory{.node = "ps-0", .memory_bytes = 1024};
  EXPECT_EQ(memory.After(before), (Resources{.cpus = 2, .memory_bytes = 1024}));
  EXPECT_EQ(ResizeNode::To("ps-0", {.cpus = 1}).After(before), (Resources{.cpus = 1}));
}

}  // namespace
}  // namespace muster::scaler
