#include <memory>

#include "tests/net/tls_fixture.h"
#include "tests/ps/net/connection_fixture.h"

namespace muster::ps {
namespace connection_test {

using net::tls_test::Certificates;

/// A lane whose TCP port speaks TLS, and which has room for few connections.
class TlsConnectionTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kConnections = 3;
  static constexpr uint32_t kHandshakes = 2;

  TlsConnectionTest()
      : lane_({.name = "ps-0.0",
               .unix_path = dir_.File("s"),
               .limits = {.tcp_connections_max = kConnections,
                          .handshakes_max = kHandshakes,
                          .spin_max = {}},
               .tls =
                   [this] {
                     ++contexts_;
                     return certificates_.Server();
                   },
               .clock = &clock_},
              &handler_) {
    addresses_ = lane_.Listen().value();
    lane_.Start();
  }

  std::unique_ptr<WireClient> Tls(const Certificates& certificates, Role role = Role::kWorker) {
    return std::make_unique<WireClient>(addresses_[1], 0, certificates.Client(role).get());
  }
  /// A client that has said hello.
  std::unique_ptr<WireClient> Greeted() {
    auto client = Tls(certificates_);
    client->SendHello("job");
    const auto reply = client->Receive();
    EXPECT_TRUE(reply && reply->header.kind == Kind::kHelloReply) << client->tls()->failure();
    return client;
  }
  /// A client that connects and says nothing.
  std::unique_ptr<WireClient> Stopped() { return std::make_unique<WireClient>(addresses_[1]); }
  /// Stops the lane. Then the handler is no longer used.
  std::vector<std::string> Reasons() {
    lane_.Stop();
    std::vector<std::string> reasons;
    for (const Refusal& refusal : handler_.refused) {
      EXPECT_FALSE(refusal.greeted);
      EXPECT_THAT(refusal.peer, ::testing::StartsWith("127.0.0.1:"));
      reasons.push_back(refusal.reason);
    }
    return reasons;
  }

  ::muster::testing::TempDir dir_;
  ::muster::testing::FakeClock clock_;
  Certificates certificates_;
  std::atomic<int> contexts_ = 0;
  FakeHandler handler_;
  Lane lane_;
  std::vector<std::string> addresses_;
};

TEST_F(TlsConnectionTest, RequestsAreServedAsOverPlainSockets) {
  const auto client = Greeted();
  const size_t keys = 100'000;  // the frames have many records
  std::vector<uint64_t> all(keys, 3);
  const wire::Parts parts(1, 1, {{.table = 1, .keys = static_cast<uint32_t>(keys)}});
  wire::Header header;
  header.kind = Kind::kPull;
  header.parts = 1;
  client->Send(header, wire::EncodePull(parts), all);
  EXPECT_THAT(client->Receive().value().values,
              ::testing::AllOf(::testing::SizeIs(keys * FakeHandler::kDim), Each(3)));
  header.kind = Kind::kPush;
  const std::vector<float> gradients(keys * FakeHandler::kDim, 0.5f);
  client->Send(header, wire::EncodePush({}, parts), all,
               {reinterpret_cast<const char*>(gradients.data()), gradients.size() * sizeof(float)});
  EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
  EXPECT_THAT(Reasons(), ElementsAre());
  EXPECT_EQ(handler_.pushed_values, gradients);
}

TEST_F(TlsConnectionTest, TheUnixSocketAndSharedMemoryStayPlain) {
  WireClient unix(addresses_[0]), ring("ring:" + dir_.File("s"));
  for (WireClient* client : {&unix, &ring}) {
    client->SendHello("job");
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kHelloReply);
  }
  EXPECT_TRUE(ring.in_rings());
}

TEST_F(TlsConnectionTest, EachConnectionAsksForTheContext) {
  Greeted();
  EXPECT_EQ(contexts_, 1);
  Greeted();
  EXPECT_EQ(contexts_, 2);
}

TEST_F(TlsConnectionTest, PlainTextIsRefused) {
  WireClient plain(addresses_[1]);
  plain.SendHello("job");
  EXPECT_FALSE(plain.Receive());
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("speaks plain text")));
}

TEST_F(TlsConnectionTest, AnotherJobIsRefusedAndLearnsWhy) {
  const Certificates others("id-2");
  const auto stranger = Tls(others);
  EXPECT_THAT(stranger->tls()->failure(), HasSubstr("another authority"));
  EXPECT_FALSE(stranger->tls()->handshake_done());
  EXPECT_FALSE(stranger->Receive());
  Greeted();  // later than the stranger's alert, which the lane has read by then
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("does not know the authority")));
}

TEST_F(TlsConnectionTest, OnlyWorkersAreServed) {
  const auto person = Tls(certificates_, Role::kOperator);
  person->SendHello("job");
  EXPECT_FALSE(person->Receive());
  EXPECT_THAT(person->tls()->failure(), HasSubstr("refuses our certificate"));
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("has the role operator, but only worker")));
}

TEST_F(TlsConnectionTest, AHandshakeMustEndInTime) {
  const auto stopped = Stopped();
  Greeted();  // accepted after it
  clock_.Advance(std::chrono::milliseconds(4999));
  lane_.EndOverdue();
  Greeted();
  clock_.Advance(std::chrono::milliseconds(1));
  lane_.EndOverdue();
  EXPECT_FALSE(stopped->Receive());
  EXPECT_THAT(Reasons(), ElementsAre("it did not finish its TLS handshake within 5000 ms"));
}

TEST_F(TlsConnectionTest, StoppedHandshakesKeepNobodyOut) {
  std::vector<std::unique_ptr<WireClient>> stopped;
  for (uint32_t i = 0; i < 3 * kConnections; ++i) stopped.push_back(Stopped());
  const auto worker = Greeted();
  for (uint32_t i = 0; i < 3 * kConnections; ++i) {
    if (i + kHandshakes <= 3 * kConnections) {
      EXPECT_FALSE(stopped[i]->Receive()) << i;
    }
    stopped.push_back(Stopped());
  }
  const auto another = Greeted();
  worker->SendHello("job");  // is served, so it was not ended: no second hello is accepted
  EXPECT_THAT(worker->ReceiveErrorAndEnd(), HasSubstr("pulls and pushes"));
}

TEST_F(TlsConnectionTest, AFullLaneEndsAHandshakeButNoWorker) {
  const auto first = Greeted();
  const auto second = Greeted();
  const auto stopped = Stopped();
  const auto third = Greeted();
  EXPECT_FALSE(stopped->Receive());
  const auto fourth = Tls(certificates_);
  EXPECT_THAT(fourth->tls()->failure(), HasSubstr("ended the connection"));
}

}  // namespace connection_test
}  // namespace muster::ps
