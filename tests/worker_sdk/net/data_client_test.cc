#include "worker_sdk/net/data_client.h"

#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/client_fixture.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DataClientTest = ClientFixture;
class EncodingTest : public ClientFixture, public ::testing::WithParamInterface<wire::Encoding> {};

TEST_P(EncodingTest, PushesAndPullsOverOneUnixConnection) {
  muster::testing::TempDir dir;
  FakeDataServer server({.unix_path = dir.File("s")});
  DataClient::Options options = ClientOptions();
  options.encoding = GetParam();
  Start(options);
  client_->SetServers(Servers({server.address()}));
  SendRequests requests;
  for (uint64_t id = 1; id <= 40; ++id) requests.push_back(Request(id, true));
  client_->Send(std::move(requests));
  for (uint64_t id = 1; id <= 40; ++id) {
    EXPECT_EQ(collector_.Wait(id).parts.size(), kPartitions);
  }
  client_->Send({Request(41, false)});
  EXPECT_THAT(collector_.Wait(41).rows,
              ElementsAre(40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40));
  EXPECT_EQ(server.connections(), 1);
  client_->Stop();
}
INSTANTIATE_TEST_SUITE_P(Encodings, EncodingTest,
                         ::testing::Values(wire::Encoding::kFloat32, wire::Encoding::kFloat16,
                                           wire::Encoding::kBfloat16));

TEST_F(DataClientTest, EverythingOutstandingOnALostConnectionIsUnanswered) {
  std::atomic<int> seen = 0;
  FakeDataServer server({});
  server.before_answer = [&](const wire::Header&) { return ++seen != 2; };
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, true), Request(2, true), Request(3, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("ps-0.0"));
  EXPECT_THAT(collector_.Wait(3).why, HasSubstr("ps-0.0"));
  client_->Send({Request(4, true)});
  EXPECT_EQ(collector_.Wait(4).why, "");
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(DataClientTest, NobodyThereAnUnknownServerAndAReplacedOne) {
  std::string address;
  {
    FakeDataServer server({});
    address = server.address();
  }
  Start();
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("not in the map"));
  client_->SetServers(Servers({address}));
  client_->Send({Request(2, true)});
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr(address));
  std::atomic<bool> hang = true;
  FakeDataServer server({});
  server.before_answer = [&](const wire::Header&) {
    while (hang) std::this_thread::yield();
    return true;
  };
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(3, true)});
  while (server.connections() == 0) std::this_thread::yield();
  client_->SetServers(Servers({server.address()}, 2));
  EXPECT_THAT(collector_.Wait(3).why, HasSubstr("replaced"));
  hang = false;
}

TEST_F(DataClientTest, NobodySpinsWhereNoMemoryIsShared) {
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
  client_->Spin(
      [] {
        ADD_FAILURE() << "it waits";
        return true;
      },
      std::chrono::hours(1));
}

TEST_F(DataClientTest, ASmallRequestDoesNotOvertakeALargeOne) {
  std::vector<uint64_t> order;
  FakeDataServer server({});
  server.before_answer = [&](const wire::Header& header) {
    order.push_back(header.request);
    return true;
  };
  Start();
  client_->SetServers(Servers({server.address()}));
  std::vector<uint64_t> sent;
  for (uint64_t id = 1; id <= 200; ++id) {
    SendRequest request = Request(id, true);
    if (id % 2 == 1) request.floats = 1 << 20;  // as far as the client can tell
    client_->Send({std::move(request)});
    sent.push_back(id);
  }
  for (uint64_t id = 1; id <= 200; ++id) EXPECT_EQ(collector_.Wait(id).why, "");
  client_->Stop();
  server.Kill();
  EXPECT_EQ(order, sent);
}

TEST_F(DataClientTest, TimersFireAndStopIsIdempotent) {
  Start();
  client_->SetTimer(TimePoint());
  client_->SetTimer(TimePoint::max());  // a later one does not replace it
  collector_.WaitForTimer();
  client_->Stop();
  client_->Stop();
  client_->Send({Request(1, true)});
}

}  // namespace
}  // namespace muster::sdk
