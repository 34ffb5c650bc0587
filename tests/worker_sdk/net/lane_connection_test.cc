#include "worker_sdk/net/internal/lane_connection.h"

#include <cstring>

#include "tests/worker_sdk/net/link_fixture.h"

namespace muster::sdk {
namespace {

using ::testing::HasSubstr;

using ConnectionTest = ClientFixture;

TEST_F(ConnectionTest, RefusedPartsBringNoRows) {
  FakeDataServer server({});
  server.refuse = [](uint32_t partition) {
    return partition % 2 == 0 ? wire::PartCode::kRetry : wire::PartCode::kOk;
  };
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, false)});
  EXPECT_EQ(collector_.Wait(1).rows.size(), kPartitions / 2 * 2);
}

TEST_F(ConnectionTest, AnotherJobOrIncarnationIsNotUsed) {
  FakeDataServer server({.job_id = "id-2"});
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("works for job id id-2"));
  FakeDataServer newer({.incarnation = 5});
  client_->SetServers(Servers({newer.address()}, 4));
  client_->Send({Request(2, true, 4)});
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("incarnation is 5"));
  EXPECT_EQ(newer.parts_applied(), 0);
}

TEST_F(ConnectionTest, ADamagedAnswerEndsTheConnectionOnly) {
  std::atomic<int> answers = 0;
  FakeDataServer server({});
  server.damage = [&](std::string* frame) {
    switch (++answers) {
      case 1:
        (*frame)[0] = 'x';
        break;  // magic
      case 2:
        (*frame)[8] = 99;
        break;  // request
      case 3:
        (*frame)[64] ^= 0x40;
        break;  // partition of the first part
      default:
        break;
    }
  };
  Start();
  client_->SetServers(Servers({server.address()}));
  for (uint64_t id = 1; id <= 3; ++id) {
    client_->Send({Request(id, false)});
    EXPECT_NE(collector_.Wait(id).why, "") << id;
  }
  client_->Send({Request(4, false)});
  EXPECT_EQ(collector_.Wait(4).why, "");
}

TEST_F(ConnectionTest, AnAnswerWithAWrongChecksumOrNoneIsNotBelieved) {
  std::atomic<int> answers = 0;
  FakeDataServer server({});
  server.damage = [&](std::string* frame) {
    switch (++answers) {
      case 1:  // of a pull: a row
        frame->back() ^= 1;
        break;
      case 2:  // of a push: "skipped" of the first part
        (*frame)[64 + 5] ^= 1;
        break;
      case 3:
        (*frame)[41] = 0;
        std::memset(frame->data() + 48, 0, 8);
        break;
      default:
        break;
    }
  };
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, false)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("checksum of an answer is wrong"));
  client_->Send({Request(2, true)});
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("checksum of an answer is wrong"));
  client_->Send({Request(3, false)});
  EXPECT_THAT(collector_.Wait(3).why, HasSubstr("without a checksum"));
  client_->Send({Request(4, false)});
  EXPECT_EQ(collector_.Wait(4).why, "");
}

TEST_F(ConnectionTest, ADamagedRowInANarrowEncodingIsNotBelieved) {
  std::atomic<int> answers = 0;
  FakeDataServer server({.encoding = wire::Encoding::kFloat16});
  server.damage = [&](std::string* frame) {
    if (++answers == 1) frame->back() ^= 1;
  };
  DataClient::Options options = ClientOptions();
  options.encoding = wire::Encoding::kFloat16;
  Start(options);
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, false)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("checksum of an answer is wrong"));
  client_->Send({Request(2, false)});
  EXPECT_EQ(collector_.Wait(2).why, "");
}

TEST_F(ConnectionTest, ASilentServerIsGivenUp) {
  std::atomic<bool> hang = true;
  FakeDataServer server({});
  server.before_answer = [&](const wire::Header&) {
    while (hang) std::this_thread::yield();
    return true;
  };
  DataClient::Options options = ClientOptions();
  options.silence_max = std::chrono::milliseconds(1);
  Start(options);
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("no answer"));
  hang = false;
}

/// A link whose buffers are far smaller than the frames.
class SlowLinkTest : public LinkFixture {
 protected:
  static constexpr uint32_t kRows = 8, kRowBytes = 1 << 20;
  static DataClient::Options SmallBuffers() {
    DataClient::Options options = ClientOptions();
    options.unix_buffer_bytes = 64 << 10;
    return options;
  }

  SlowLinkTest() : LinkFixture(SmallBuffers()) {}
  /// kRows rows of kRowBytes, pulled or pushed.
  SendRequest LargeRequest(uint64_t id, bool push) {
    std::vector<uint64_t> keys;
    std::vector<PartitionId> order;
    for (uint64_t key = 0; key < kRows; ++key) keys.push_back(key);
    for (uint32_t p = 0; p < kPartitions; ++p) order.push_back(PartitionId(p));
    auto batch = std::make_shared<RowBatch>();
    const TableKeys table{TableId(1), kRowBytes / 4, keys};
    batch->plan = PlanRows(std::span(&table, 1), order);
    if (push) batch->values.resize(batch->plan.value_count, 1.0f);
    SendRequest request = Request(id, push);
    request.items.clear();
    for (uint32_t i = 0; i < batch->plan.parts.size(); ++i) {
      request.items.push_back({i, OwnerEpoch(1)});
    }
    request.batch = std::move(batch);
    return request;
  }
  /// Most of the time that a silent server is given.
  void WaitAWhile() {
    clock_.Advance(options_.silence_max * 3 / 4);
    connection_->CheckSilence();
  }
};

TEST_F(SlowLinkTest, APushThatIsStillMovingIsNotCutOff) {
  connection_->Send(LargeRequest(1, true));
  const wire::Header header = ReadHeader();
  Read(header.directory_bytes);
  for (uint32_t row = 0; row + 1 < kRows; ++row) {
    Read(kRowBytes);
    WaitAWhile();
    ASSERT_FALSE(collector_.Ended(1)) << collector_.Wait(1).why << " after row " << row;
  }
  // Now the server reads no more. What it read last was noticed at the check above.
  WaitAWhile();
  WaitAWhile();
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("no answer for 20000 ms"));
}

TEST_F(SlowLinkTest, AnAnswerThatIsStillMovingIsNotCutOff) {
  const SendRequest request = LargeRequest(1, false);
  connection_->Send(request);
  wire::Header header = ReadHeader();
  Read(header.directory_bytes + header.keys * 8);
  std::vector<wire::PartReply> parts;
  for (const auto& item : request.items) {
    parts.push_back(
        {request.batch->plan.parts[item.part].partition.value(), wire::PartCode::kOk, false});
  }
  header.kind = wire::Kind::kPullReply;
  header.parts = static_cast<uint32_t>(parts.size());
  const std::string frame =
      AnswerFrame(header, wire::EncodeReply(parts, ""), std::string(kRows * kRowBytes, '\0'));
  for (size_t at = 0; at < frame.size(); at += kRowBytes) {
    ASSERT_FALSE(collector_.Ended(1)) << collector_.Wait(1).why << " after " << at << " bytes";
    Write(std::string_view(frame).substr(at, kRowBytes));
    WaitAWhile();
  }
  EXPECT_EQ(collector_.Wait(1).why, "");
  EXPECT_EQ(collector_.Wait(1).rows.size(), kRows * kRowBytes / 4);
}

TEST_F(SlowLinkTest, WhatTheServerSaysOfAMalformedFrameIsToldWithItsRequest) {
  connection_->Send(Request(1, true));
  connection_->Send(Request(2, true));
  wire::Header error;
  error.kind = wire::Kind::kError;
  error.request = 2;
  Write(AnswerFrame(error, wire::EncodeError("2000 groups, at most 1024 are taken"), ""));
  EXPECT_EQ(collector_.Wait(2).refused, "2000 groups, at most 1024 are taken");
  EXPECT_EQ(collector_.Wait(1).refused, "");
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("ps-0.0: 2000 groups"));
}

}  // namespace
}  // namespace muster::sdk
