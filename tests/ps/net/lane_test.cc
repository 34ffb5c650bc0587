#include "ps/net/lane.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <future>

#include "base/clock.h"
#include "base/descriptors.h"
#include "tests/ps/net/fake_handler.h"
#include "tests/ps/net/wire_client.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

const SystemClock kClock;

using ::muster::testing::DescriptorLimit;
using ::muster::testing::kSanitized;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::ElementsAre;
using testing::FakeHandler;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::WireClient;

TEST(LaneTest, AddressesAreBestFirstAndTheSocketIsTheOwnersAlone) {
  TempDir dir;
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = dir.File("s"), .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  EXPECT_THAT(addresses, ElementsAre("unix:" + dir.File("s"), StartsWith("127.0.0.1:")));
  struct stat info;
  ASSERT_EQ(::stat(dir.File("s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  lane.Stop();
  EXPECT_NE(::stat(dir.File("s").c_str(), &info), 0);
}

TEST(LaneTest, ASocketLeftByADeadServerIsReplaced) {
  TempDir dir;
  FakeHandler handler;
  Lane dead({.name = "dead", .unix_path = dir.File("s"), .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto unused, dead.Listen());
  Lane lane({.name = "l", .unix_path = dir.File("s"), .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  lane.Start();
  WireClient client(addresses[0]);
  client.SendHello("job");
  EXPECT_TRUE(client.Receive());
}

TEST(LaneTest, ATooLongPathMeansTcpOnly) {
  TempDir dir;
  FakeHandler handler;
  Lane lane(
      {.name = "l", .unix_path = dir.File(std::string(120, 'p')), .limits = {}, .clock = &kClock},
      &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  EXPECT_THAT(addresses, ElementsAre(StartsWith("127.0.0.1:")));
}

// Then every worker of the job comes by TCP.
TEST(LaneTest, WithoutAUnixSocketAsManyConnectByTcpAsByBoth) {
  TempDir dir;
  FakeHandler handler;
  for (const std::string& path : {std::string(), dir.File(std::string(120, 'p'))}) {
    Lane lane({.name = "l",
               .unix_path = path,
               .limits = {.unix_connections_max = 2, .tcp_connections_max = 1},
               .clock = &kClock},
              &handler);
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
    lane.Start();
    std::vector<std::unique_ptr<WireClient>> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(std::make_unique<WireClient>(addresses[0]));
      clients.back()->SendHello("job");
      EXPECT_TRUE(clients.back()->Receive()) << i;
    }
    WireClient fourth(addresses[0]);
    EXPECT_THAT(fourth.ReceiveErrorAndEnd(), HasSubstr("3 TCP connections, which is its limit"));
  }
}

TEST(LaneTest, WithoutADescriptorItTriesAgainLater) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer needs descriptors itself";
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = "", .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  lane.Start();
  const OwnedFd early(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<uint16_t>(std::stoi(addresses[0].substr(addresses[0].find(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const DescriptorLimit limit(DescriptorLimit::kNone);
    EXPECT_EQ(::connect(early.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    for (int turn = 0; turn < 2; ++turn) {  // of the loop: it has tried to accept
      std::promise<void> done;
      lane.Post([&] { done.set_value(); });
      done.get_future().get();
    }
  }
  WireClient client(addresses[0]);
  client.SendHello("job");
  EXPECT_TRUE(client.Receive());
}

TEST(LaneTest, AMissingFolderIsAnErrorWithThePath) {
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = "/nowhere/at/all", .limits = {}, .clock = &kClock},
            &handler);
  EXPECT_THAT(lane.Listen(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/nowhere/at/all")));
}

TEST(LaneTest, PeersThatConnectBeforeTheStartAreServedAfterIt) {
  TempDir dir;
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = dir.File("s"), .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  WireClient client(addresses[0]);
  client.SendHello("job");
  lane.Start();
  EXPECT_TRUE(client.Receive());
}

TEST(LaneTest, PostedTasksRunInOrderOnTheLanesThread) {
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = "", .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto unused, lane.Listen());
  std::vector<int> order;
  std::promise<std::thread::id> thread;
  lane.Post([&] { order.push_back(1); });
  lane.Start();
  lane.Post([&] { order.push_back(2); });
  lane.Post([&] { thread.set_value(std::this_thread::get_id()); });
  EXPECT_TRUE(thread.get_future().get() != std::this_thread::get_id());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(LaneTest, TasksForLaterRunAndStopDoesNotWaitForThem) {
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = "", .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto unused, lane.Listen());
  lane.Start();
  std::promise<void> ran;
  lane.PostAfter(std::chrono::hours(24), [] { FAIL() << "ran after the end"; });
  lane.PostAfter(std::chrono::milliseconds(1), [&] { ran.set_value(); });
  ran.get_future().get();
  lane.Stop();
  lane.PostAfter(std::chrono::milliseconds(0), [] { FAIL() << "ran after the end"; });
}

TEST(LaneTest, StopClosesConnectionsAndMayBeRepeated) {
  FakeHandler handler;
  Lane lane({.name = "l", .unix_path = "", .limits = {}, .clock = &kClock}, &handler);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto addresses, lane.Listen());
  lane.Start();
  WireClient client(addresses[0]);
  client.SendHello("job");
  ASSERT_TRUE(client.Receive());
  lane.Stop();
  EXPECT_FALSE(client.Receive());
  lane.Stop();
  lane.Post([] { FAIL() << "ran after the end"; });
}

}  // namespace
}  // namespace muster::ps
