#include "kubernetes/client/connection_pool.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;

class ConnectionPoolTest : public ::testing::Test {
 protected:
  /// A connection that has served a request.
  std::unique_ptr<Connection> Used() {
    const TimePoint deadline = SystemClock().Now() + seconds(60);
    auto connection = Connection::Open(server_.Access(), {}, deadline);
    EXPECT_THAT(connection, testing::IsOk());
    EXPECT_THAT((*connection)->Exchange({.target = "/"}, deadline, 100), testing::IsOk());
    return *std::move(connection);
  }

  testing::FakeApiServer server_{[](const testing::FakeRequest&, testing::FakeWire& wire) {
    wire.Send(testing::Answer(200, "{}"));
  }};
  testing::FakeClock clock_;
  ConnectionPool pool_{&clock_};
};

TEST_F(ConnectionPoolTest, GivesBackWhatItGot) {
  EXPECT_EQ(pool_.Take(""), nullptr);
  auto connection = Used();
  Connection* const same = connection.get();
  pool_.Return(std::move(connection), "");
  EXPECT_EQ(pool_.Take("").get(), same);
  EXPECT_EQ(pool_.Take(""), nullptr);
}

TEST_F(ConnectionPoolTest, NotForAnotherCertificate) {
  pool_.Return(Used(), "one");
  EXPECT_EQ(pool_.Take("two"), nullptr);
}

TEST_F(ConnectionPoolTest, NotAfterALongTime) {
  pool_.Return(Used(), "");
  clock_.Advance(seconds(31));
  EXPECT_EQ(pool_.Take(""), nullptr);
}

TEST_F(ConnectionPoolTest, NotIfTheServerHasClosedIt) {
  auto connection = Used();
  Connection* const same = connection.get();
  pool_.Return(std::move(connection), "");
  server_.EndConnections();
  while (same->IsReusable()) std::this_thread::yield();
  EXPECT_EQ(pool_.Take(""), nullptr);
}

TEST_F(ConnectionPoolTest, KeepsFour) {
  for (int i = 0; i < 6; ++i) pool_.Return(Used(), "");
  for (int i = 0; i < 4; ++i) EXPECT_NE(pool_.Take(""), nullptr);
  EXPECT_EQ(pool_.Take(""), nullptr);
}

}  // namespace
}  // namespace muster::kubernetes
