#include "worker_sdk/core/unreachable_servers.h"

#include <gmock/gmock.h>

namespace muster::sdk {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TimePoint kStart{std::chrono::seconds(100)};
const LaneAddress kLane{ServerId(1), ServerIncarnation(4), 0};

TEST(UnreachableServersTest, AServerIsReportedAfterSomeSeconds) {
  UnreachableServers servers;
  servers.OnCannotConnect(kLane, "10.0.0.9:7100: refused", kStart);
  servers.OnCannotConnect(kLane, "10.0.0.9:7100: no route", kStart + std::chrono::seconds(4));
  EXPECT_THAT(servers.Report(kStart + std::chrono::seconds(4)), IsEmpty());
  const auto report = servers.Report(kStart + UnreachableServers::kReportAfter);
  ASSERT_THAT(report, SizeIs(1));
  EXPECT_EQ(report[0],
            (UnreachableServer{ServerId(1), ServerIncarnation(4), "10.0.0.9:7100: no route"}));
}

TEST(UnreachableServersTest, AConnectionEndsIt) {
  UnreachableServers servers;
  servers.OnCannotConnect(kLane, "refused", kStart);
  servers.OnConnected(kLane);
  EXPECT_THAT(servers.Report(kStart + std::chrono::hours(1)), IsEmpty());
}

TEST(UnreachableServersTest, FormerProcessesAreForgotten) {
  UnreachableServers servers;
  servers.OnCannotConnect(kLane, "refused", kStart);
  servers.OnServers({{ServerId(1), ServerIncarnation(5), "ps-1", {}}});
  EXPECT_THAT(servers.Report(kStart + std::chrono::hours(1)), IsEmpty());
}

TEST(UnreachableServersTest, LanesOfOneServerAreReportedOnce) {
  UnreachableServers servers;
  servers.OnCannotConnect(kLane, "refused", kStart);
  servers.OnCannotConnect({ServerId(1), ServerIncarnation(4), 1}, "refused", kStart);
  EXPECT_THAT(servers.Report(kStart + std::chrono::hours(1)), SizeIs(1));
}

}  // namespace
}  // namespace muster::sdk
