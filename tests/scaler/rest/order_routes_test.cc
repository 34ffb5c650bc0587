#include "scaler/rest/order_routes.h"

#include <gmock/gmock.h>

namespace muster::scaler::rest {
namespace {

/// The route that an order is sent to; nullptr: there is none.
const Route* RouteOf(const std::vector<Route>& routes, const Order& order) {
  const Route* found = nullptr;
  for (const Route& route : routes) {
    if (!route.arguments_of(order).has_value()) continue;
    EXPECT_EQ(found, nullptr) << route.path << " and " << found->path;
    found = &route;
  }
  return found;
}

TEST(OrderRoutesTest, EachOrderHasOneRouteAndComesBackAsItWas) {
  const std::vector<Route> routes = OrderRoutes();
  const auto sent = [&routes](const Order& order) {
    const Route* const route = RouteOf(routes, order);
    return route == nullptr ? Order() : route->order_of(*route->arguments_of(order));
  };
  const auto restart =
      std::get<RestartNode>(sent(RestartNode{.node = "ps-0", .only_start = uint64_t{1} << 40}));
  EXPECT_EQ(restart.node, "ps-0");
  EXPECT_EQ(restart.only_start, uint64_t{1} << 40);
  EXPECT_EQ(std::get<RestartNode>(sent(RestartNode{.node = "ps-0"})).only_start, std::nullopt);
  const auto limits =
      std::get<ResizeNode>(sent(ResizeNode{.node = "ps-1", .cpus = 1.5, .memory_bytes = 1 << 30}));
  EXPECT_EQ(limits.node, "ps-1");
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(std::get<ResizeNode>(sent(ResizeNode{.node = "ps-1"})).cpus, std::nullopt);
  EXPECT_EQ(std::get<ScaleWorkers>(sent(ScaleWorkers{3})).workers, 3u);
  EXPECT_EQ(std::get<EndNode>(sent(EndNode{"worker-1"})).node, "worker-1");
  for (const bool paused : {true, false}) {
    const auto pause = std::get<SetPaused>(sent(SetPaused{"hang", paused}));
    EXPECT_EQ(pause.policy, "hang");
    EXPECT_EQ(pause.paused, paused);
  }
  EXPECT_THAT(std::get<RetryShards>(sent(RetryShards{{"0/0/1", "0/0/2"}})).ids,
              ::testing::ElementsAre("0/0/1", "0/0/2"));
  EXPECT_TRUE(std::holds_alternative<DrainJob>(sent(DrainJob())));
  EXPECT_TRUE(std::holds_alternative<CancelJob>(sent(CancelJob())));
  EXPECT_EQ(RouteOf(routes, FailJob{"no"}), nullptr) << "only policies order this";
  EXPECT_EQ(RouteOf(routes, DumpStacks{"ps-0"}), nullptr);
}

}  // namespace
}  // namespace muster::scaler::rest
