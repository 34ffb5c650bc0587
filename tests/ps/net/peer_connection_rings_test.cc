// The differences of a connection whose peer shares memory with it. peer_connection_test.cc checks
// the common behaviour for every kind of address.
#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "tests/ps/net/connection_fixture.h"

namespace muster::ps {
namespace connection_test {

class RingsTest : public ConnectionTest {
 protected:
  explicit RingsTest(LaneLimits limits = {}) : ConnectionTest(limits) {}
  std::unique_ptr<WireClient> InRings() {
    auto client = Greeted(addresses_[2]);
    EXPECT_TRUE(client->in_rings());
    return client;
  }
  template <typename Ask>
  auto OnLane(Ask ask) {
    std::promise<decltype(ask())> answer;
    lane_.Post([&] { answer.set_value(ask()); });
    return answer.get_future().get();
  }
  int Pulls() {
    return OnLane([&] { return handler_.pulls; });
  }
  size_t Refusals() {
    return OnLane([&] { return handler_.refused.size(); });
  }
};

/// The directory of a push of rows of so many keys to partition 0.
std::string PushOf(size_t keys) {
  return wire::EncodePush({}, {0, 0, {{.table = 1, .keys = static_cast<uint32_t>(keys)}}});
}

wire::Header PushHeader(wire::Encoding encoding = wire::Encoding::kFloat32) {
  wire::Header header;
  header.kind = Kind::kPush;
  header.parts = 1;
  header.encoding = encoding;
  return header;
}

std::string_view Chars(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

TEST_F(RingsTest, FramesLargerThanTheRingArriveWhole) {
  const auto client = InRings();
  std::vector<uint64_t> keys(2 * client->ring_room() / FakeHandler::kDim / sizeof(float));
  std::iota(keys.begin(), keys.end(), 0u);
  std::vector<float> values(keys.size() * FakeHandler::kDim);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const std::string directory = PushOf(keys.size());
  client->Send(PushHeader(), directory, keys, Chars(values));
  EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
  const std::vector<float> rows = Pull(client.get(), keys);
  ASSERT_EQ(rows.size(), values.size());
  EXPECT_EQ(rows.back(), static_cast<float>(keys.back()));
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_keys, keys);
  EXPECT_EQ(handler_.pushed_values, values);
}

TEST_F(RingsTest, GradientsStayInTheRingUntilTheyAreApplied) {
  const auto client = InRings();
  const size_t room = client->ring_room();
  const std::vector<uint64_t> keys(1000, 7);
  const std::vector<float> gradients(keys.size() * FakeHandler::kDim, 1);
  const std::string directory = PushOf(keys.size());
  handler_.hold = true;
  client->Send(PushHeader(), directory, keys, Chars(gradients));
  while (handler_.push_slices == 0) std::this_thread::yield();
  EXPECT_EQ(client->ring_room(), room - std::span(gradients).size_bytes());
  // Later frames wait, and do not harm them.
  SendPull(client.get(), {3});
  handler_.hold = false;
  EXPECT_EQ(client->Receive()->header.kind, Kind::kPushReply);
  EXPECT_THAT(client->Receive()->values, ElementsAre(3, 3, 3, 3));
  EXPECT_EQ(client->ring_room(), room);
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_values, gradients);
}

TEST_F(RingsTest, AFrameThatComesInPiecesIsServedWhenItIsWhole) {
  const auto client = InRings();
  const std::vector<uint64_t> keys = {5, 6, 7};
  const std::vector<float> gradients(keys.size() * FakeHandler::kDim, 2);
  const std::string directory = PushOf(keys.size());
  const std::string frame = WireClient::FrameOf(PushHeader(), directory, keys, Chars(gradients));
  for (size_t piece = 1; piece < frame.size(); ++piece) {
    for (size_t at = 0; at < frame.size(); at += piece) {
      client->SendBytes(std::string_view(frame).substr(at, piece));
      Pulls();  // the lane has looked
    }
    ASSERT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
  }
  lane_.Stop();
  EXPECT_EQ(handler_.served.size(), frame.size() - 1);
  EXPECT_THAT(handler_.pushed_values, Each(2.0f));
}

TEST_F(RingsTest, APeerThatNeverPausesLeavesTheLaneToOthers) {
  const auto busy = InRings();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    // Empty pulls, which cost nothing but themselves.
    const std::string pull = WireClient::FrameOf(PullHeader(0), "", {}, {});
    std::string many;
    for (int i = 0; i < 100; ++i) many += pull;
    while (!stop) busy->SendBytes(many);
    busy->ShutdownSend();
  });
  std::thread reader([&] {
    while (busy->Receive()) {
    }
  });
  const auto other = InRings();
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_THAT(Pull(other.get(), {3}), ElementsAre(3, 3, 3, 3));
  }
  stop = true;
  writer.join();
  reader.join();
}

TEST_F(RingsTest, ARefusedPushGivesItsRoomBack) {
  const auto client = InRings();
  const size_t room = client->ring_room();
  const std::vector<float> gradients(room / 2 / sizeof(float), 1);
  // Its directory says nothing of the keys.
  client->Send(PushHeader(), PushOf(0), std::vector<uint64_t>{1}, Chars(gradients));
  EXPECT_THAT(client->ReceiveErrorAndEnd(), HasSubstr("header says 1"));
  EXPECT_EQ(client->ring_room(), room);
}

TEST_F(RingsTest, WhatIsHalfAppliedIsThereWhenThePeerIsGone) {
  auto client = InRings();
  const size_t floats = client->ring_room() / 2 / sizeof(float);  // the most that is lent
  const std::vector<uint64_t> keys(floats / FakeHandler::kDim, 7);
  const std::vector<float> gradients(floats, 1);
  // A reply that is not taken: the connection's end is seen, though nothing is read from it.
  SendPull(client.get(), std::vector<uint64_t>(3 * floats / FakeHandler::kDim, 3));
  handler_.hold = true;
  client->Send(PushHeader(), PushOf(keys.size()), keys, Chars(gradients));
  while (handler_.push_slices == 0) std::this_thread::yield();
  client.reset();
  while (handler_.abandoned == 0) std::this_thread::yield();
  lane_.Stop();
  EXPECT_EQ(handler_.abandoned_sum, static_cast<double>(floats));
}

TEST_F(RingsTest, GradientsOnAnOddAddressAreCopied) {
  const auto client = InRings();
  const std::vector<uint64_t> keys = {5};
  const std::string directory = PushOf(1);
  const std::string one_narrow("\x80\x3f", 2);  // a one in bfloat16
  const std::vector<float> gradients(FakeHandler::kDim, 3);
  for (int round = 0; round < 4; ++round) {
    client->Send(PushHeader(wire::Encoding::kBfloat16), directory, keys, one_narrow);
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
    client->Send(PushHeader(), directory, keys, Chars(gradients));
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
  }
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_values.size(), 4 * (1 + gradients.size()));
  EXPECT_THAT(std::span(handler_.pushed_values).subspan(1, 4), Each(3.0f));
}

TEST_F(RingsTest, PipelinedRequestsAreAnsweredInOrder) {
  const auto client = InRings();
  for (int round = 0; round < 20; ++round) {
    for (uint64_t request = 0; request < 1000; ++request) {
      SendPull(client.get(), {request}, wire::Encoding::kFloat32, request);
    }
    for (uint64_t request = 0; request < 1000; ++request) {
      const Frame frame = client->Receive().value();
      ASSERT_EQ(frame.header.request, request);
      ASSERT_EQ(frame.values[0], static_cast<float>(request));
    }
  }
}

TEST_F(RingsTest, OnlyWhoAsksOverTheUnixSocketGetsThem) {
  EXPECT_FALSE(Greeted(addresses_[0])->in_rings());
  WireClient tcp(addresses_[1]);
  wire::Header header;
  header.kind = Kind::kHello;
  tcp.Send(header, wire::EncodeHello({.job = "job", .ring_bytes_max = 4u << 20}));
  const Frame frame = tcp.Receive().value();
  EXPECT_EQ(wire::DecodeHelloReply(frame.directory)->ring_bytes, 0u);
}

TEST_F(RingsTest, AnImpossibleCountEndsItsConnectionAndNoOther) {
  const auto bystander = InRings(), liar = InRings();
  liar->rings().openers().control->written = ~0ull;
  liar->Ring();
  EXPECT_FALSE(liar->Receive().has_value());
  EXPECT_THAT(Pull(bystander.get(), {3}), ElementsAre(3, 3, 3, 3));
  lane_.Stop();
  ASSERT_EQ(handler_.refused.size(), 1u);
  EXPECT_THAT(handler_.refused[0].reason, HasSubstr("the shared ring says that"));
  EXPECT_EQ(handler_.refused[0].peer, "worker-0 (UNIX socket)");
  EXPECT_TRUE(handler_.refused[0].closed);
}

TEST_F(RingsTest, AnImpossibleCountOfWhatWasReadEndsItsConnectionToo) {
  const auto bystander = InRings(), liar = InRings();
  liar->rings().makers().control->read = ~0ull;
  SendPull(liar.get(), {3}, wire::Encoding::kFloat32, 1);
  // It does not look for an answer, for then it would count again.
  while (Refusals() == 0) EXPECT_THAT(Pull(bystander.get(), {3}), ElementsAre(3, 3, 3, 3));
  lane_.Stop();
  ASSERT_EQ(handler_.refused.size(), 1u);
  EXPECT_THAT(handler_.refused[0].reason, HasSubstr("bytes were read"));
  EXPECT_TRUE(handler_.refused[0].closed);
}

TEST_F(RingsTest, WhatChangesInTheRingAfterItWasReadChangesNothing) {
  const auto client = InRings();
  EXPECT_THAT(Pull(client.get(), {3}), ElementsAre(3, 3, 3, 3));
  // All that the client has ever written, and may write again: the server no longer reads it.
  std::fill_n(client->rings().openers().data, 1000, std::byte{0xff});
  EXPECT_THAT(Pull(client.get(), {4}), ElementsAre(4, 4, 4, 4));
}

TEST_F(RingsTest, AFrameBeforeTheMemoryIsThereIsRefused) {
  WireClient client(addresses_[0]);
  wire::Header header;
  header.kind = Kind::kHello;
  const std::string hello = wire::EncodeHello({.job = "job", .ring_bytes_max = 4u << 20});
  header.directory_bytes = static_cast<uint32_t>(hello.size());
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::EncodeHeader(header, bytes);
  std::string both(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  both += hello;
  client.SendBytes(both + both);
  // A reply that offers memory, and then the reason.
  const std::string offered = client.ReceiveBytes(wire::kHeaderBytes + 24);
  EXPECT_EQ(offered.size(), wire::kHeaderBytes + 24);
  EXPECT_THAT(client.ReceiveErrorAndEnd(), HasSubstr("before the shared memory was set up"));
}

TEST_F(RingsTest, RowsAreGatheredWhereThePeerReadsThem) {
  const auto client = InRings();
  const std::vector<uint64_t> many(10'000, 5);
  for (uint64_t request = 0; request < 100; ++request) {
    EXPECT_THAT(Pull(client.get(), {request}), Each(static_cast<float>(request)));
    EXPECT_THAT(Pull(client.get(), many), Each(5.0f));
    EXPECT_THAT(Pull(client.get(), {3}, wire::Encoding::kFloat16), Each(3.0f));
  }
  lane_.Stop();
  EXPECT_EQ(handler_.pulls_in_place, 300);
  EXPECT_EQ(handler_.served.size(), 300u);
  EXPECT_EQ(handler_.served[0].sent_bytes,
            wire::kHeaderBytes + wire::ReplyDirectoryBytes(1, 0) + 4 * sizeof(float));
}

TEST_F(RingsTest, AnAnswerThatBeginsWithAnotherTextThanExpectedArrivesToo) {
  const auto client = InRings();
  // The text of a push's answer leaves the next rows on an odd address.
  const std::string directory = PushOf(1);
  const std::vector<uint64_t> keys = {7};
  const std::vector<float> gradient(FakeHandler::kDim, 1);
  for (int round = 0; round < 8; ++round) {
    client->Send(PushHeader(), directory, keys, Chars(gradient));
    const Frame pushed = client->Receive().value();
    EXPECT_EQ(wire::DecodeReply(pushed.header, pushed.directory)->text, "pushed");
    EXPECT_THAT(Pull(client.get(), {3}), ElementsAre(3, 3, 3, 3));
  }
  lane_.Stop();
  EXPECT_GT(handler_.pulls_in_place, 0);
  EXPECT_LT(handler_.pulls_in_place, 8);
}

TEST_F(RingsTest, RowsBehindATextThatNobodyForesawAreCopied) {
  const auto client = InRings();
  OnLane([&] { return handler_.pull_text = "a part was refused"; });
  SendPull(client.get(), {9, 8}, wire::Encoding::kFloat32, 77);
  const Frame frame = client->Receive().value();
  EXPECT_EQ(frame.header.request, 77u);
  EXPECT_EQ(wire::DecodeReply(frame.header, frame.directory)->text, "a part was refused");
  EXPECT_THAT(frame.values, ElementsAre(9, 9, 9, 9, 8, 8, 8, 8));
}

class SmallRingsTest : public RingsTest {
 protected:
  SmallRingsTest() : RingsTest({.outstanding_bytes_max = 1000, .ring_bytes_max = 16 * kRing}) {}
  static constexpr size_t kRing = net::RingBudget::kRingBytesMin;
};

TEST_F(SmallRingsTest, MemoryHasALimitAndComesBack) {
  std::vector<std::unique_ptr<WireClient>> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(InRings());
  const auto without = Greeted(addresses_[2]);
  EXPECT_FALSE(without->in_rings());
  EXPECT_THAT(Pull(without.get(), {3}), ElementsAre(3, 3, 3, 3));
  peers.pop_back();
  // It is closed when the lane notices.
  while (!Greeted(addresses_[2])->in_rings()) Pulls();
}

TEST_F(SmallRingsTest, APeerThatDoesNotReadIsNotReadFromAndLosesNothing) {
  const auto slow = InRings(), other = InRings();
  const std::vector<uint64_t> keys(100'000, 3);  // a reply of 1.6 MB
  const uint64_t requests = 20;
  SendPull(slow.get(), keys, wire::Encoding::kFloat32, 0);
  for (uint64_t request = 1; request < requests; ++request) {
    SendPull(slow.get(), {request}, wire::Encoding::kFloat32, request);
  }
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_THAT(Pull(other.get(), {3}), ElementsAre(3, 3, 3, 3));
  }
  EXPECT_EQ(Pulls(), 1 + 10);
  EXPECT_EQ(slow->Receive().value().values.size(), keys.size() * FakeHandler::kDim);
  for (uint64_t request = 1; request < requests; ++request) {
    EXPECT_EQ(slow->Receive().value().values[0], static_cast<float>(request));
  }
}

}  // namespace connection_test
}  // namespace muster::ps
