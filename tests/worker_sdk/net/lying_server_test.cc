#include <gmock/gmock.h>

#include <array>

#include "tests/worker_sdk/net/link_fixture.h"

/// What a server may do wrong on its connection.
namespace muster::sdk {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DataClient::Options SmallBuffers() {
  DataClient::Options options = ClientOptions();
  options.unix_buffer_bytes = 16 << 10;
  return options;
}

wire::Header HeaderOf(wire::Kind kind, uint64_t request = 0) {
  wire::Header header;
  header.kind = kind;
  header.request = request;
  return header;
}
std::string Greeting(const wire::HelloReply& reply) {
  return AnswerFrame(HeaderOf(wire::Kind::kHelloReply), wire::EncodeHelloReply(reply), "");
}
/// What a server would answer; rows are zeros.
std::string AnswerOf(const SendRequest& request) {
  wire::Header header =
      HeaderOf(request.push ? wire::Kind::kPushReply : wire::Kind::kPullReply, request.id.value());
  std::vector<wire::PartReply> parts;
  for (const auto& item : request.items) {
    parts.push_back(
        {request.batch->plan.parts[item.part].partition.value(), wire::PartCode::kOk, false});
  }
  header.parts = static_cast<uint32_t>(parts.size());
  const size_t bytes = request.push ? 0 : request.batch->plan.value_count * sizeof(float);
  return AnswerFrame(header, wire::EncodeReply(parts, ""), std::string(bytes, '\0'));
}
/// A push that is larger than what a socket takes at once.
SendRequest LargePush(uint64_t id) {
  std::vector<uint64_t> keys;
  std::vector<PartitionId> order;
  for (uint64_t key = 0; key < 8; ++key) keys.push_back(key);
  for (uint32_t p = 0; p < kPartitions; ++p) order.push_back(PartitionId(p));
  auto batch = std::make_shared<RowBatch>();
  const TableKeys table{TableId(1), 1 << 18, keys};
  batch->plan = PlanRows(std::span(&table, 1), order);
  batch->values.resize(batch->plan.value_count, 1.0f);
  SendRequest request = Request(id, true);
  request.items.clear();
  for (uint32_t i = 0; i < batch->plan.parts.size(); ++i) {
    request.items.push_back({i, OwnerEpoch(1)});
  }
  request.batch = std::move(batch);
  return request;
}

/// Before the greeting.
class LyingGreetingTest : public LinkFixture {
 protected:
  LyingGreetingTest() : LinkFixture(ClientOptions(), std::nullopt) {}
  void ConnectWith(uint64_t request) {
    sharing_ = {};
    Connect();
    connection_->Send(Request(request, true));
  }
};

TEST_F(LyingGreetingTest, AGreetingThatIsNoneEndsTheConnection) {
  const wire::HelloReply good{1, kPartitions, 0, 1, 0};
  const auto changed = [&good](auto change) {
    wire::HelloReply reply = good;
    change(reply);
    return Greeting(reply);
  };
  std::string damaged = Greeting(good);
  damaged.back() ^= 1;
  std::string unchecked = Greeting(good);
  unchecked[41] = 0;
  std::memset(unchecked.data() + 48, 0, 8);
  wire::Header with_keys = HeaderOf(wire::Kind::kPull);
  with_keys.keys = 1;
  std::array<std::byte, wire::kHeaderBytes> keys_bytes;
  wire::EncodeHeader(with_keys, keys_bytes);
  const struct {
    std::string bytes;
    std::string text;
    bool elsewhere;  // the next connection does not take this path
  } cases[] = {
      {changed([](auto& r) { r.server_incarnation = 2; }), "its incarnation is 2", true},
      {changed([](auto& r) { r.partition_count = kPartitions + 1; }), "expected lane 0 and", true},
      {changed([](auto& r) { r.lane = 1; }), "it is lane 1", true},
      {AnswerOf(Request(1, true)), "it did not greet", true},
      {AnswerFrame(HeaderOf(wire::Kind::kHelloReply), "x", ""), "malformed", true},
      {AnswerFrame(HeaderOf(wire::Kind::kError), wire::EncodeError("not yours"), ""), "not yours",
       true},
      {AnswerFrame(HeaderOf(wire::Kind::kError), "x", ""), "malformed", true},
      {damaged, "checksum of an answer is wrong", true},
      {unchecked, "without a checksum", true},
      {std::string(reinterpret_cast<const char*>(keys_bytes.data()), keys_bytes.size()),
       "answered with keys", false},
      {"HTTP/1.1 400 Bad Request" + std::string(64, ' '), "not a muster frame", false},
  };
  uint64_t id = 0;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    ConnectWith(++id);
    Write(c.bytes);
    Turn();
    ASSERT_TRUE(collector_.Ended(id));
    EXPECT_THAT(collector_.Wait(id).why, HasSubstr(c.text));
    EXPECT_THAT(collector_.Wait(id).refused, IsEmpty()) << "it is about the connection";
    EXPECT_THAT(collector_.cannot_connect(), HasSubstr(c.text));
    EXPECT_EQ(sharing_.tcp_only.contains(lane_), c.elsewhere);
  }
}

TEST_F(LyingGreetingTest, AServerThatGoesInAnyByteOfItsGreetingIsToldOf) {
  const std::string greeting = Greeting({1, kPartitions, 0, 1, 0});
  for (size_t bytes = 0; bytes < greeting.size(); ++bytes) {
    ConnectWith(bytes + 1);
    Write(std::string_view(greeting).substr(0, bytes));
    ASSERT_FALSE(collector_.Ended(bytes + 1));
    HangUp();
    ASSERT_TRUE(collector_.Ended(bytes + 1)) << bytes;
    EXPECT_THAT(collector_.Wait(bytes + 1).why, HasSubstr("End of file"));
  }
}

TEST_F(LyingGreetingTest, SilenceInTheGreetingHasALimit) {
  for (const size_t bytes : {0, 70}) {
    const uint64_t id = bytes + 1;
    ConnectWith(id);
    Write(std::string_view(Greeting({1, kPartitions, 0, 1, 0})).substr(0, bytes));
    connection_->CheckSilence();
    clock_.Advance(options_.connect_timeout);
    connection_->CheckSilence();
    ASSERT_FALSE(collector_.Ended(id));
    clock_.Advance(milliseconds(1));
    connection_->CheckSilence();
    ASSERT_TRUE(collector_.Ended(id));
    EXPECT_THAT(collector_.Wait(id).why, HasSubstr("it does not greet"));
    EXPECT_THAT(collector_.cannot_connect(), HasSubstr("it does not greet"));
  }
}

/// After the greeting.
class LyingServerTest : public LinkFixture {
 protected:
  LyingServerTest() : LinkFixture(SmallBuffers()) {}
  /// What has been written of the request.
  void ReadRequest() {
    const wire::Header header = ReadHeader();
    Read(header.directory_bytes + header.keys * sizeof(uint64_t) + header.value_bytes);
  }
};

TEST_F(LyingServerTest, AServerThatGoesInAnyByteOfAnAnswerIsToldOf) {
  for (const bool push : {false, true}) {
    const std::string answer = AnswerOf(Request(0, push));
    for (size_t bytes = 0; bytes < answer.size(); bytes += 1 + bytes / 64 * 7) {
      Connect();
      Greet(0);
      const uint64_t id = 10 * bytes + (push ? 3 : 1);
      const SendRequest request = Request(id, push);
      connection_->Send(request);
      connection_->Send(Request(id + 1, push));
      ReadRequest();
      ReadRequest();
      Write(AnswerOf(request).substr(0, bytes));
      ASSERT_FALSE(collector_.Ended(id)) << bytes;
      HangUp();
      ASSERT_TRUE(collector_.Ended(id) && collector_.Ended(id + 1)) << bytes;
      EXPECT_THAT(collector_.Wait(id).why, HasSubstr("ps-0.0: End of file"));
      EXPECT_THAT(collector_.Wait(id + 1).why, HasSubstr("ps-0.0: End of file"));
    }
  }
  EXPECT_THAT(collector_.cannot_connect(), IsEmpty()) << "they were greeted";
}

TEST_F(LyingServerTest, AnAnswerThatComesTwiceCountsOnceAndEndsTheConnection) {
  connection_->Send(Request(1, true));
  connection_->Send(Request(2, true));
  Write(AnswerOf(Request(1, true)));
  EXPECT_EQ(collector_.Wait(1).why, "");
  Write(AnswerOf(Request(1, true)));
  ASSERT_TRUE(collector_.Ended(2));
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("it answered request 1, which was not asked"));
  EXPECT_FALSE(sharing_.tcp_only.contains(lane_)) << "it was greeted there";
  EXPECT_EQ(collector_.Wait(1).why, "");
}

TEST_F(LyingServerTest, AnswersInAnotherOrderFindTheirRequests) {
  connection_->Send(Request(1, true));
  connection_->Send(Request(2, false));
  Write(AnswerOf(Request(2, false)) + AnswerOf(Request(1, true)));
  EXPECT_EQ(collector_.Wait(1).why, "");
  EXPECT_EQ(collector_.Wait(2).why, "");
  EXPECT_THAT(collector_.Wait(1).rows, IsEmpty());
  EXPECT_THAT(collector_.Wait(2).rows, Not(IsEmpty()));
}

TEST_F(LyingServerTest, AnAnswerBeforeTheRequestIsWrittenIsTaken) {
  const SendRequest large = LargePush(1);
  connection_->Send(large);
  const wire::Header header = ReadHeader();
  Write(AnswerOf(large));
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_EQ(collector_.Wait(1).why, "");
  Read(header.directory_bytes + header.keys * sizeof(uint64_t) + header.value_bytes);
  connection_->Send(Request(2, true));
  ReadRequest();
  Write(AnswerOf(Request(2, true)));
  EXPECT_EQ(collector_.Wait(2).why, "");
}

TEST_F(LyingServerTest, AnAnswerToARequestThatStillWaitsWasNotAsked) {
  connection_->Send(LargePush(1));
  connection_->Send(Request(2, true));
  ReadHeader();
  Write(AnswerOf(Request(2, true)));
  ASSERT_TRUE(collector_.Ended(1) && collector_.Ended(2));
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("request 2, which was not asked"));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("request 2, which was not asked"));
}

TEST_F(LyingServerTest, AnErrorOfNoKnownRequestIsAboutTheConnection) {
  for (const uint64_t named : {0, 7}) {
    Connect();
    Greet(0);
    const uint64_t id = 10 + named;
    connection_->Send(Request(id, true));
    Write(AnswerFrame(HeaderOf(wire::Kind::kError, named), wire::EncodeError("no room"), ""));
    EXPECT_THAT(collector_.Wait(id).why, HasSubstr("no room"));
    EXPECT_EQ(collector_.Wait(id).refused, "");
    EXPECT_FALSE(sharing_.tcp_only.contains(lane_)) << "it was greeted there";
  }
}

TEST_F(LyingServerTest, SilenceCountsFromTheRequestOn) {
  connection_->CheckSilence();  // sees that the greeting has come
  clock_.Advance(10 * options_.silence_max);
  connection_->CheckSilence();  // nothing is owed
  connection_->Send(Request(1, true));
  clock_.Advance(options_.silence_max);
  connection_->CheckSilence();
  ASSERT_FALSE(collector_.Ended(1));
  clock_.Advance(milliseconds(1));
  connection_->CheckSilence();
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("no answer for 20000 ms"));
}

}  // namespace
}  // namespace muster::sdk
