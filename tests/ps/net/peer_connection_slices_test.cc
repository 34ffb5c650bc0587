// Requests in slices, through real sockets.
#include <future>

#include "tests/ps/net/connection_fixture.h"

namespace muster::ps {
namespace connection_test {

/// A push of `parts` parts without rows, of the minibatch with the request's number.
void SendPush(WireClient* client, uint32_t parts, uint64_t request) {
  wire::Parts all;
  for (uint32_t i = 0; i < parts; ++i) all.Add(i, 1);
  wire::Header header;
  header.kind = Kind::kPush;
  header.parts = parts;
  header.request = request;
  client->Send(header, wire::EncodePush({.minibatch = static_cast<uint32_t>(request)}, all));
}

TEST_F(ConnectionTest, OthersAreServedBetweenTheSlicesOfARequest) {
  const auto large = Greeted(addresses_[0]);
  const auto small = Greeted(addresses_[1]);
  handler_.hold = true;
  SendPush(large.get(), 3, 1);
  while (handler_.push_slices == 0) Pull(small.get(), {1});
  EXPECT_THAT(Pull(small.get(), {3}), ElementsAre(3, 3, 3, 3));
  std::promise<void> ran;
  lane_.Post([&] { ran.set_value(); });
  ran.get_future().get();
  handler_.hold = false;
  EXPECT_EQ(large->Receive().value().header.request, 1u);
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_parts.size(), 3u);
  EXPECT_EQ(handler_.pushed_parts[1].partition, 1u);
  EXPECT_EQ(handler_.pushed.at(1).minibatch, 1u);
}

TEST_F(ConnectionTest, NothingIsReadBehindARequestThatIsUnderWork) {
  const auto large = Greeted(addresses_[0]);
  const auto small = Greeted(addresses_[1]);
  handler_.hold = true;
  SendPush(large.get(), 2, 1);
  SendPull(large.get(), {4}, wire::Encoding::kFloat32, 2);
  int by_small = 0;
  for (; handler_.push_slices < 10; ++by_small) Pull(small.get(), {1});
  std::promise<int> pulls;
  lane_.Post([&] { pulls.set_value(handler_.pulls); });
  EXPECT_EQ(pulls.get_future().get(), by_small);
  handler_.hold = false;
  EXPECT_EQ(large->Receive().value().header.request, 1u);
  EXPECT_EQ(large->Receive().value().header.request, 2u);
}

TEST_F(ConnectionTest, AHandlerIsToldThatAConnectionDiedBetweenTwoSlices) {
  auto large = Greeted(addresses_[0]);
  const auto small = Greeted(addresses_[1]);
  // A reply that is not taken: the connection's end is seen, though nothing is read from it.
  SendPull(large.get(), std::vector<uint64_t>(1'000'000, 3));
  handler_.hold = true;
  SendPush(large.get(), 2, 1);
  while (handler_.push_slices == 0) Pull(small.get(), {1});
  EXPECT_EQ(handler_.abandoned, 0);
  large.reset();
  while (handler_.abandoned == 0) Pull(small.get(), {1});
  EXPECT_THAT(Pull(small.get(), {3}), ElementsAre(3, 3, 3, 3));
  lane_.Stop();
  EXPECT_EQ(handler_.abandoned, 1);
  EXPECT_TRUE(handler_.pushed_parts.empty());
}

TEST_F(ConnectionTest, ALaneThatStopsEndsARequestThatIsUnderWork) {
  const auto client = Greeted(addresses_[0]);
  const auto small = Greeted(addresses_[1]);
  handler_.hold = true;
  SendPush(client.get(), 2, 1);
  while (handler_.push_slices == 0) Pull(small.get(), {1});
  lane_.Stop();
  EXPECT_EQ(handler_.abandoned, 1);
}

class SmallSlicesTest : public ConnectionTest {
 protected:
  SmallSlicesTest() : ConnectionTest({.slice_bytes = 1000, .buffer_bytes_kept = 1000}) {}
};

TEST_F(SmallSlicesTest, LargeFramesInSlicesAreWhatTheyAreInOneGo) {
  const auto client = Greeted(addresses_[0]);
  std::vector<uint64_t> keys(5'000);
  std::vector<float> values(keys.size() * FakeHandler::kDim);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 256;  // exact in every encoding
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256);
  for (const auto encoding : {wire::Encoding::kFloat32, wire::Encoding::kBfloat16}) {
    const std::string directory =
        wire::EncodePush({}, {0, 0, {{.table = 1, .keys = static_cast<uint32_t>(keys.size())}}});
    std::string wire_values(values.size() * wire::BytesPerValue(encoding), '\0');
    wire::EncodeValues(values, encoding, std::as_writable_bytes(std::span(wire_values)));
    wire::Header header = PullHeader(1, encoding);
    header.kind = Kind::kPush;
    header.checksum_kind = wire::Checksum::kXxh3;
    header.checksum = wire::ChecksumOf(directory, keys, wire_values);
    client->Send(header, directory, keys, wire_values);
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
    const std::vector<float> rows = Pull(client.get(), keys, encoding);
    ASSERT_EQ(rows.size(), values.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], static_cast<float>(keys[i / FakeHandler::kDim]));
    }
    header.checksum ^= 1;
    WireClient liar(addresses_[0]);
    liar.SendHello("job");
    ASSERT_TRUE(liar.Receive());
    liar.Send(header, directory, keys, wire_values);
    EXPECT_THAT(liar.ReceiveErrorAndEnd(), HasSubstr("checksum"));
  }
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_keys.size(), 2 * keys.size());
  values.insert(values.end(), values.begin(), values.end());
  EXPECT_EQ(handler_.pushed_values, values);
}

TEST_F(SmallSlicesTest, ManySmallRequestsAtOnceAreSlicesToo) {
  const auto client = Greeted(addresses_[0]);
  for (uint64_t request = 0; request < 1000; ++request) {
    SendPull(client.get(), {request}, wire::Encoding::kFloat32, request);
  }
  for (uint64_t request = 0; request < 1000; ++request) {
    ASSERT_EQ(client->Receive().value().header.request, request);
  }
}

}  // namespace connection_test
}  // namespace muster::ps
