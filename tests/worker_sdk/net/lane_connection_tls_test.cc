// A client and a real lane over TCP with TLS.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "ps/net/lane.h"
#include "tests/net/tls_fixture.h"
#include "tests/ps/net/fake_handler.h"
#include "tests/worker_sdk/net/client_fixture.h"

namespace muster::sdk {
namespace {

using net::tls_test::Certificates;
using ::testing::HasSubstr;

constexpr uint32_t kWidth = ps::testing::FakeHandler::kDim;
constexpr LaneAddress kTlsLane = {ServerId(0), ServerIncarnation(7), 1};

class TlsLaneTest : public ClientFixture {
 protected:
  TlsLaneTest()
      : lane_({.name = "ps-0.1",
               .unix_path = "",
               .limits = {},
               .tls = net::SourceOf(certificates_.ServerContext()),
               .clock = &clock_},
              &handler_) {
    addresses_ = lane_.Listen().value();
    lane_.Start();
  }
  ~TlsLaneTest() override {
    if (client_) client_->Stop();
  }

  void StartWith(net::TlsContextSource tls) {
    DataClient::Options options = ClientOptions();
    options.partition_count = 16;
    options.tls = std::move(tls);
    Start(std::move(options));
    client_->SetServers({{kTlsLane.server, kTlsLane.incarnation, "ps-0", {{}, addresses_}}});
  }
  /// `count` keys of one partition, from `first` on.
  Collector::Answer Ask(uint64_t id, uint64_t first, uint32_t count, bool push) {
    auto batch = std::make_shared<RowBatch>();
    for (uint32_t i = 0; i < count; ++i) batch->plan.keys.push_back(first + i);
    batch->plan.groups.push_back({TableId(1), kWidth, count});
    batch->plan.value_count = uint64_t{count} * kWidth;
    batch->plan.parts.push_back({.partition = PartitionId(1),
                                 .key_begin = 0,
                                 .key_count = count,
                                 .value_begin = 0,
                                 .value_count = batch->plan.value_count,
                                 .group_begin = 0,
                                 .group_count = 1});
    if (push) batch->values.assign(batch->plan.value_count, 0.5f);
    SendRequest request;
    request.id = RequestId(id);
    request.lane = kTlsLane;
    if (push) request.push = PushIdentity{};
    request.batch = batch;
    request.items.push_back({0, OwnerEpoch(1)});
    request.keys = count;
    request.floats = batch->plan.value_count;
    client_->Send({request});
    return collector_.Wait(id);
  }

  Certificates certificates_;
  SystemClock clock_;
  ps::testing::FakeHandler handler_;
  ps::Lane lane_;
  std::vector<std::string> addresses_;
};

TEST_F(TlsLaneTest, PullsAndPushesOfEverySizeAreAnswered) {
  StartWith([this] { return certificates_.Client(); });
  uint64_t id = 0;
  for (const uint32_t count : {1u, 100u, 20'000u, 100'000u}) {
    const Collector::Answer pulled = Ask(++id, 7, count, false);
    ASSERT_EQ(pulled.why, "");
    ASSERT_EQ(pulled.rows.size(), count * kWidth);
    for (size_t i = 0; i < pulled.rows.size(); ++i) ASSERT_EQ(pulled.rows[i], 7.0f + i / kWidth);
    const Collector::Answer pushed = Ask(++id, 7, count, true);
    ASSERT_EQ(pushed.why, "");
    ASSERT_EQ(pushed.parts.size(), 1u);
  }
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_values, std::vector<float>(120'101 * kWidth, 0.5f));
}

TEST_F(TlsLaneTest, AClientWithoutTlsIsUnanswered) {
  StartWith({});
  EXPECT_THAT(Ask(1, 1, 1, false).why, HasSubstr("ps-0.1: "));
}

TEST_F(TlsLaneTest, ARefusalSaysWhy) {
  const Certificates others("id-2");
  StartWith([&] { return others.Client(); });
  EXPECT_THAT(Ask(1, 1, 1, false).why, HasSubstr("another authority"));
  client_->Stop();
  StartWith([this] { return certificates_.Client(Role::kScaler); });
  EXPECT_THAT(Ask(2, 1, 1, false).why, HasSubstr("the peer refuses our certificate"));
}

TEST_F(TlsLaneTest, AServerThatStopsInTheHandshakeIsGivenUp) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor silent(io, {boost::asio::ip::address_v4::loopback(), 0});
  DataClient::Options options = ClientOptions();
  options.connect_timeout = std::chrono::milliseconds(1);
  options.tls = [this] { return certificates_.Client(); };
  Start(std::move(options));
  client_->SetServers({{kTlsLane.server,
                        kTlsLane.incarnation,
                        "ps-0",
                        {{}, {"127.0.0.1:" + std::to_string(silent.local_endpoint().port())}}}});
  EXPECT_THAT(Ask(1, 1, 1, false).why, HasSubstr("it does not greet"));
}

TEST_F(TlsLaneTest, EachConnectionAsksOnceForTheContext) {
  int asked = 0;
  StartWith([&] {
    ++asked;
    return certificates_.Client();
  });
  EXPECT_EQ(Ask(1, 1, 1, false).why, "");
  EXPECT_EQ(Ask(2, 1, 1, false).why, "");
  client_->Stop();
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace muster::sdk
