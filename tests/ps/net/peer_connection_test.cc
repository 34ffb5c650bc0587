#include <cstring>
#include <future>

#include "base/random.h"
#include "tests/ps/net/connection_fixture.h"

namespace muster::ps {
namespace connection_test {

TEST_F(ConnectionTest, HelloIsAnsweredOnBothKindsOfSocket) {
  ASSERT_EQ(addresses_.size(), 3u);
  for (const std::string& address : addresses_) {
    WireClient client(address);
    ASSERT_TRUE(client.connected()) << address;
    client.SendHello("job");
    const Frame frame = client.Receive().value();
    ASSERT_EQ(frame.header.kind, Kind::kHelloReply);
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto reply, wire::DecodeHelloReply(frame.directory));
    EXPECT_EQ(reply.server_incarnation, 7u);
    EXPECT_EQ(reply.lane_count, 2u);
  }
}

TEST_F(ConnectionTest, PullReturnsTheRowsOfOwnedParts) {
  const auto client = Greeted(addresses_[0]);
  wire::Parts parts(1, 1, {{.table = 1, .keys = 2}});
  parts.Add(13, 1, {{.table = 1, .keys = 1}});
  parts.Add(2, 1, {{.table = 1, .keys = 0}, {.table = 2, .keys = 1}});
  client->Send(PullHeader(3, wire::Encoding::kFloat32, 99), wire::EncodePull(parts),
               std::vector<uint64_t>{5, 6, 7, 8});
  const Frame frame = client->Receive().value();
  EXPECT_EQ(frame.header.kind, Kind::kPullReply);
  EXPECT_EQ(frame.header.request, 99u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto reply, wire::DecodeReply(frame.header, frame.directory));
  EXPECT_EQ(reply.parts[1].code, PartCode::kWrongOwner);
  EXPECT_EQ(reply.parts[2].partition, 2u);
  EXPECT_THAT(frame.values, ElementsAre(5, 5, 5, 5, 6, 6, 6, 6, 8, 8, 8, 8));
}

TEST_F(ConnectionTest, NarrowEncodingsWorkBothWays) {
  const auto client = Greeted(addresses_[1]);
  for (const auto encoding : {wire::Encoding::kFloat16, wire::Encoding::kBfloat16}) {
    EXPECT_THAT(Pull(client.get(), {3}, encoding), ElementsAre(3, 3, 3, 3));
    const std::vector<float> gradients = {1.5f, -2, 0.25f, 0};
    std::string narrow(gradients.size() * 2, '\0');
    wire::EncodeValues(gradients, encoding, std::as_writable_bytes(std::span(narrow)));
    wire::Header header = PullHeader(1, encoding);
    header.kind = Kind::kPush;
    client->Send(header, wire::EncodePush({}, {0, 0, {{.table = 1, .keys = 1}}}),
                 std::vector<uint64_t>{9}, narrow);
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kPushReply);
  }
  lane_.Stop();
  EXPECT_THAT(handler_.pushed_values, ElementsAre(1.5f, -2, 0.25f, 0, 1.5f, -2, 0.25f, 0));
  EXPECT_THAT(handler_.pushed_keys, ElementsAre(9, 9));
}

TEST_F(ConnectionTest, LargeFramesArriveWholeHoweverTheyAreCut) {
  const auto client = Greeted(addresses_[0]);
  const size_t keys = 50'000;
  std::vector<uint64_t> all(keys);
  std::vector<float> values(keys * FakeHandler::kDim);
  for (size_t i = 0; i < keys; ++i) all[i] = i;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const wire::PushIdentity push{.shard_index = 5, .token = 6};
  const wire::Parts parts(3, 4, {{.table = 1, .keys = static_cast<uint32_t>(keys)}});
  wire::Header header = PullHeader(1);
  header.kind = Kind::kPush;
  client->Send(header, wire::EncodePush(push, parts), all,
               {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const Frame frame = client->Receive().value();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto reply, wire::DecodeReply(frame.header, frame.directory));
  EXPECT_EQ(reply.text, "pushed");
  EXPECT_EQ(Pull(client.get(), all).size(), values.size());
  lane_.Stop();
  EXPECT_EQ(handler_.pushed_keys, all);
  EXPECT_EQ(handler_.pushed_values, values);
  EXPECT_EQ(handler_.pushed_parts, parts);
  EXPECT_THAT(handler_.pushed, ElementsAre(push));
}

TEST_F(ConnectionTest, ChecksumsAreCheckedAndGivenBack) {
  const auto client = Greeted(addresses_[0]);
  const std::vector<uint64_t> keys = {1, 2};
  const wire::Parts parts(1, 1, {{.table = 1, .keys = 2}});
  const std::string directory = wire::EncodePull(parts);
  wire::Header header = PullHeader(1);
  header.checksum_kind = wire::Checksum::kXxh3;
  header.checksum = wire::ChecksumOf(directory, keys, "");
  client->Send(header, directory, keys);
  const Frame frame = client->Receive().value();
  EXPECT_EQ(frame.header.checksum,
            wire::ChecksumOf(frame.directory, {},
                             {reinterpret_cast<const char*>(frame.values.data()),
                              frame.values.size() * sizeof(float)}));
  header.checksum ^= 1;
  client->Send(header, directory, keys);
  EXPECT_THAT(client->ReceiveErrorAndEnd(), HasSubstr("checksum"));
}

TEST_F(ConnectionTest, AHelloWithAChecksumIsCheckedAndAnsweredWithOne) {
  const std::string hello =
      wire::EncodeHello({.job = "job", .job_id = "id-1", .peer = "worker-0", .software = "test"});
  wire::Header header;
  header.kind = Kind::kHello;
  header.checksum_kind = wire::Checksum::kXxh3;
  header.checksum = wire::ChecksumOf(hello, {}, "");
  WireClient client(addresses_[0]);
  client.Send(header, hello);
  const Frame greeting = client.Receive().value();
  ASSERT_EQ(greeting.header.kind, Kind::kHelloReply);
  EXPECT_EQ(greeting.header.checksum_kind, wire::Checksum::kXxh3);
  EXPECT_EQ(greeting.header.checksum, wire::ChecksumOf(greeting.directory, {}, ""));
  header.checksum ^= 1;
  WireClient damaged(addresses_[0]);
  damaged.Send(header, hello);
  EXPECT_THAT(damaged.ReceiveErrorAndEnd(), HasSubstr("checksum"));
}

TEST_F(ConnectionTest, AnErrorNamesTheRequestIfItIsKnown) {
  for (const bool known : {true, false}) {
    const auto client = Greeted(addresses_[0]);
    SendPull(client.get(), {3}, wire::Encoding::kFloat32, 99);
    ASSERT_TRUE(client->Receive());
    wire::Header header = PullHeader(9, wire::Encoding::kFloat32, 100);
    if (known) {
      client->Send(header, "abcd");
    } else {
      client->SendBytes(std::string(64, ' '));
    }
    const Frame error = client->Receive().value();
    EXPECT_EQ(error.header.kind, Kind::kError);
    EXPECT_EQ(error.header.request, known ? 100u : 0u);
  }
}

TEST_F(ConnectionTest, AnotherJobIsRefusedWithTheReason) {
  WireClient client(addresses_[0]);
  client.SendHello("other");
  EXPECT_THAT(client.ReceiveErrorAndEnd(), HasSubstr("belongs to job \"job\", not to \"other\""));
}

/// A frame that must end its own connection, with this in the text, and no other.
struct BadFrame {
  const char* name;
  const char* text;
  bool greeted;
  std::string bytes;
};

std::string HeaderOnly(Kind kind, uint32_t directory_bytes, uint32_t parts, uint64_t keys,
                       uint64_t value_bytes) {
  wire::Header header;
  header.kind = kind;
  header.directory_bytes = directory_bytes;
  header.parts = parts;
  header.keys = keys;
  header.value_bytes = value_bytes;
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::EncodeHeader(header, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<BadFrame> BadFrames() {
  std::string version = HeaderOnly(Kind::kHello, 0, 0, 0, 0);
  version[4] = 77;
  return {
      {"not ours", "not a muster frame", false,
       "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(64, ' ')},
      {"wire version", "version 77", false, version},
      {"pull before hello", "must be a hello", false, HeaderOnly(Kind::kPull, 0, 0, 0, 0)},
      {"too large a hello", "a hello's directory has at most 16404 bytes", false,
       HeaderOnly(Kind::kHello, 16405, 0, 0, 0)},
      {"malformed hello", "malformed directory", false,
       HeaderOnly(Kind::kHello, 4, 0, 0, 0) + "\xff\xff\xff\xff"},
      {"second hello", "kind 1", true, HeaderOnly(Kind::kHello, 0, 0, 0, 0)},
      {"a reply", "kind 4", true, HeaderOnly(Kind::kPullReply, 4, 0, 0, 0) + std::string(4, '\0')},
      {"an error", "kind 7", true, HeaderOnly(Kind::kError, 4, 0, 0, 0) + std::string(4, '\0')},
      {"too many keys", "number of keys", true, HeaderOnly(Kind::kPull, 16, 1, 1u << 25, 0)},
      {"too many values", "values' size", true, HeaderOnly(Kind::kPush, 16, 1, 1, 1ull << 40)},
      {"too large a directory", "directory's size", true,
       HeaderOnly(Kind::kPull, 1u << 25, 1, 1, 0)},
      {"parts that do not fit", "cannot hold", true, HeaderOnly(Kind::kPull, 4, 9, 0, 0) + "abcd"},
      {"bytes left over", "left over", true, HeaderOnly(Kind::kPull, 4, 0, 0, 0) + "abcd"},
      {"no identity", "within the push's identity", true,
       HeaderOnly(Kind::kPush, 4, 0, 0, 0) + "abcd"},
      {"keys that do not add up", "header says 1", true,
       HeaderOnly(Kind::kPull, 0, 0, 1, 0) + std::string(8, 'k')},
  };
}

TEST_F(ConnectionTest, AMalformedFrameEndsItsConnectionAndNoOther) {
  const auto bystander = Greeted(addresses_[0]);
  for (const BadFrame& bad : BadFrames()) {
    for (const std::string& address : addresses_) {
      WireClient client(address);
      if (bad.greeted) {
        client.SendHello("job");
        ASSERT_TRUE(client.Receive());
      }
      client.SendBytes(bad.bytes);
      EXPECT_THAT(client.ReceiveErrorAndEnd(), HasSubstr(bad.text)) << bad.name;
    }
    EXPECT_THAT(Pull(bystander.get(), {3}), ElementsAre(3, 3, 3, 3)) << bad.name;
  }
}

TEST_F(ConnectionTest, WhoSaysNoHelloInTimeIsEndedWithTheReason) {
  constexpr std::chrono::milliseconds kTimeout = LaneLimits().hello_timeout;
  for (const std::string& address : addresses_) {
    const auto greeted = Greeted(address);
    WireClient silent(address), slow(address), late(address);
    slow.SendBytes(HeaderOnly(Kind::kHello, 100, 0, 0, 0) + std::string(50, 'x'));
    Pass(address, kTimeout - std::chrono::milliseconds(1));
    late.SendHello("job");
    EXPECT_EQ(late.Receive().value().header.kind, Kind::kHelloReply);
    Pass(address, std::chrono::milliseconds(1));
    EXPECT_THAT(silent.ReceiveErrorAndEnd(), HasSubstr("no hello arrived within 5000 ms"));
    EXPECT_THAT(slow.ReceiveErrorAndEnd(), HasSubstr("no hello arrived within 5000 ms"));
    Pass(address, 10 * kTimeout);
    EXPECT_THAT(Pull(&late, {3}), ElementsAre(3, 3, 3, 3));
    EXPECT_THAT(Pull(greeted.get(), {3}), ElementsAre(3, 3, 3, 3));
  }
}

TEST_F(ConnectionTest, WhatPeersAreToldTheHandlerIsToldToo) {
  std::promise<void> set;
  lane_.Post([&] {
    handler_.refuse_pushes = true;
    set.set_value();
  });
  set.get_future().get();
  WireClient stranger(addresses_[1]);
  stranger.SendHello("other");
  stranger.ReceiveErrorAndEnd();
  const auto client = Greeted(addresses_[0]);
  wire::Header header = PullHeader(1);
  header.kind = Kind::kPush;
  client->Send(header, wire::EncodePush({}, {0, 0, {}}));
  const Frame frame = client->Receive().value();
  EXPECT_EQ(wire::DecodeReply(frame.header, frame.directory)->text, "row 7 is not finite");
  client->SendBytes(HeaderOnly(Kind::kHelloReply, 0, 0, 0, 0));
  const std::string text = client->ReceiveErrorAndEnd();
  lane_.Stop();
  ASSERT_EQ(handler_.refused.size(), 3u);
  EXPECT_THAT(handler_.refused[0].peer, ::testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
  EXPECT_THAT(handler_.refused[0].reason, HasSubstr("belongs to job"));
  EXPECT_FALSE(handler_.refused[0].greeted);
  EXPECT_EQ(handler_.refused[1].peer, "worker-0 (UNIX socket)");
  EXPECT_EQ(handler_.refused[1].reason, "row 7 is not finite");
  EXPECT_FALSE(handler_.refused[1].closed);
  EXPECT_EQ(handler_.refused[2].reason, text);
  EXPECT_TRUE(handler_.refused[2].greeted);
  EXPECT_TRUE(handler_.refused[2].closed);
}

TEST_F(ConnectionTest, TheReasonSurvivesWhatThePeerStillSends) {
  WireClient client(addresses_[1], /*receive_buffer=*/4096);
  client.SendHello("job");
  ASSERT_TRUE(client.Receive());
  // The reply fills the server's socket buffer, the reason waits behind it, and bytes that will
  // never be read come after: closing now would reset the connection and lose both.
  SendPull(&client, std::vector<uint64_t>(100'000, 3));
  client.SendBytes(HeaderOnly(Kind::kError, 0, 0, 0, 0) + std::string(100'000, 'x'));
  EXPECT_EQ(client.Receive().value().values.size(), 100'000 * FakeHandler::kDim);
  EXPECT_THAT(client.ReceiveErrorAndEnd(), HasSubstr("kind 7"));
}

TEST_F(ConnectionTest, RandomCorruptionHarmsNobodyElse) {
  const auto bystander = Greeted(addresses_[0]);
  Rng rng(4);
  const wire::Parts parts(1, 1, {{.table = 1, .keys = 2}});
  const std::string good =
      HeaderOnly(Kind::kPull, 24, 1, 2, 0) + wire::EncodePull(parts) + std::string(16, '\1');
  for (int round = 0; round < 200; ++round) {
    WireClient client(addresses_[rng.Below(3)]);
    client.SendHello("job");
    std::string bytes = good + good;
    for (uint64_t flips = 1 + rng.Below(3); flips-- > 0;) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    }
    client.SendBytes(bytes);
  }
  EXPECT_THAT(Pull(bystander.get(), {3}), ElementsAre(3, 3, 3, 3));
}

class SmallLimitsTest : public ConnectionTest {
 protected:
  SmallLimitsTest()
      : ConnectionTest({.unix_connections_max = 2,
                        .tcp_connections_max = 1,
                        .outstanding_bytes_max = 1000,
                        .buffer_bytes_kept = 100}) {}
};

TEST_F(SmallLimitsTest, OneConnectionTooManyIsToldSo) {
  const auto first = Greeted(addresses_[0]);
  const auto second = Greeted(addresses_[0]);
  WireClient third(addresses_[0]);
  EXPECT_THAT(third.ReceiveErrorAndEnd(), HasSubstr("2 UNIX connections, which is its limit"));
  EXPECT_THAT(Pull(first.get(), {3}), ElementsAre(3, 3, 3, 3));
}

TEST_F(SmallLimitsTest, PeersOfOneKindLeaveTheOtherKindItsRoom) {
  WireClient silent(addresses_[1]);
  WireClient second(addresses_[1]);
  EXPECT_THAT(second.ReceiveErrorAndEnd(), HasSubstr("1 TCP connections, which is its limit"));
  const auto first = Greeted(addresses_[0]);
  const auto other = Greeted(addresses_[0]);
  EXPECT_THAT(Pull(other.get(), {3}), ElementsAre(3, 3, 3, 3));
}

class StayingPeerTest : public SmallLimitsTest, public ::testing::WithParamInterface<bool> {};

TEST_P(StayingPeerTest, WhoStaysAfterAnErrorIsClosedAndMakesRoom) {
  WireClient stays(addresses_[1]);
  if (GetParam()) {
    stays.SendHello("job");
    ASSERT_TRUE(stays.Receive());
  }
  stays.SendBytes(std::string(64, ' '));
  EXPECT_THAT(stays.ReceiveErrorAndEnd(), HasSubstr("not a muster frame"));
  WireClient refused(addresses_[1]);
  EXPECT_THAT(refused.ReceiveErrorAndEnd(), HasSubstr("its limit"));
  Pass(addresses_[0], LaneLimits().hello_timeout);
  std::promise<void> ended;
  lane_.Post([&] { ended.set_value(); });
  ended.get_future().get();
  const auto next = Greeted(addresses_[1]);
  EXPECT_THAT(Pull(next.get(), {3}), ElementsAre(3, 3, 3, 3));
}

INSTANTIATE_TEST_SUITE_P(Greeted, StayingPeerTest, ::testing::Bool());

TEST_F(SmallLimitsTest, APeerThatDoesNotReadIsNotReadFromAndLosesNothing) {
  const auto slow = Greeted(addresses_[0]);
  const auto other = Greeted(addresses_[1]);
  // The first reply, 16 MB, fits into no socket buffer; the lane must not read on meanwhile.
  const std::vector<uint64_t> keys(1'000'000, 3);
  const uint64_t requests = 20;
  SendPull(slow.get(), keys, wire::Encoding::kFloat32, 0);
  for (uint64_t request = 1; request < requests; ++request) {
    SendPull(slow.get(), {request}, wire::Encoding::kFloat32, request);
  }
  // Each round trip is a turn in which the lane would serve the slow peer too, if it read from it.
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_THAT(Pull(other.get(), {3}), ElementsAre(3, 3, 3, 3));
  }
  std::promise<int> pulls;
  lane_.Post([&] { pulls.set_value(handler_.pulls); });
  EXPECT_EQ(pulls.get_future().get(), 1 + 10);
  EXPECT_EQ(slow->Receive().value().values.size(), keys.size() * FakeHandler::kDim);
  for (uint64_t request = 1; request < requests; ++request) {
    EXPECT_EQ(slow->Receive().value().values[0], static_cast<float>(request));
  }
}

TEST_F(SmallLimitsTest, APeerThatGoesInAnyByteOfARequestMakesRoom) {
  const std::vector<float> values(FakeHandler::kDim, 1);
  wire::Header header = PullHeader(1);
  header.kind = Kind::kPush;
  const std::string push = WireClient::FrameOf(
      header, wire::EncodePush({}, {1, 1, {{.table = 1, .keys = 1}}}), std::vector<uint64_t>{9},
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  for (size_t bytes = 0; bytes <= push.size(); bytes += 13) {
    // There is room for one, once the server has seen that the last one has gone.
    for (int tries = 0; tries < 10'000; ++tries) {
      WireClient client(addresses_[1]);
      client.SendHello("job");
      const std::optional<Frame> greeting = client.Receive();
      ASSERT_TRUE(greeting.has_value());
      if (greeting->header.kind != Kind::kHelloReply) continue;
      client.SendBytes(std::string_view(push).substr(0, std::min(bytes, push.size() - 1)));
      break;
    }
  }
  EXPECT_THAT(Pull(Greeted(addresses_[0]).get(), {3}), ElementsAre(3, 3, 3, 3));
  lane_.Stop();
  EXPECT_TRUE(handler_.pushed_parts.empty());
  EXPECT_EQ(handler_.served.size(), 1u);
}

TEST_F(ConnectionTest, TheHandlerIsToldWhatEveryRequestCost) {
  const auto client = Greeted(addresses_[0]);
  EXPECT_EQ(Pull(client.get(), {5, 6}).size(), 2 * FakeHandler::kDim);
  EXPECT_EQ(Pull(client.get(), {5}, wire::Encoding::kFloat16).size(), FakeHandler::kDim);
  client->SendHello("job");  // refused: no request
  client->Receive();
  lane_.Stop();
  ASSERT_EQ(handler_.served.size(), 2u);
  const wire::Parts parts(1, 1, {{.table = 1, .keys = 2}});
  const size_t directory = wire::EncodePull(parts).size();
  EXPECT_EQ(handler_.served[0].received_bytes, wire::kHeaderBytes + directory + 2 * 8);
  const size_t answer = handler_.served[0].sent_bytes - 2 * FakeHandler::kDim * 4;
  EXPECT_GT(answer, wire::kHeaderBytes);
  EXPECT_EQ(handler_.served[1].sent_bytes, answer + FakeHandler::kDim * 2) << "as on the wire";
  EXPECT_GE(handler_.served[0].time.count(), 0);
}

}  // namespace connection_test
}  // namespace muster::ps
