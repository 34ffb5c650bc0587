// What a connection does when the server shares memory with it.
#include <cstring>
#include <optional>

#include "net/ring_memory.h"
#include "tests/worker_sdk/net/link_fixture.h"

namespace muster::sdk {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kRingBytes = 64u << 10;

/// The test plays a server that has offered rings.
class RingLinkTest : public LinkFixture {
 protected:
  RingLinkTest() : LinkFixture(ClientOptions(), kRingBytes) {}

  void Share(const net::RingMemory& memory) {
    MUSTER_CHECK(net::SendDescriptor(peer_, memory.descriptor()).ok());
    Turn();
  }
  void Enter() {
    memory_ = net::RingMemory::Make(kRingBytes).value();
    writer_.emplace(memory_->makers());
    reader_.emplace(memory_->openers());
    Share(*memory_);
  }
  void Ring() { MUSTER_CHECK(::send(peer_, "x", 1, MSG_NOSIGNAL) == 1); }
  std::string ReadRing(size_t bytes) {
    std::string into;
    while (into.size() < bytes) {
      const std::span<const std::byte> there = reader_->Bytes().value();
      const size_t count = std::min(there.size(), bytes - into.size());
      into.append(reinterpret_cast<const char*>(there.data()), count);
      reader_->Pass(count);
      if (reader_->GiveBack(reader_->passed())) Ring();
      Turn();
    }
    return into;
  }
  void WriteRing(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::span<std::byte> room = writer_->Room().value();
      const size_t count = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), count);
      bytes.remove_prefix(count);
      if (writer_->Publish(count)) Ring();
      Turn();
    }
  }
  wire::Header ReadHeaderFromRing() {
    const std::string bytes = ReadRing(wire::kHeaderBytes);
    return *wire::DecodeHeader(std::as_bytes(std::span(bytes)).first<wire::kHeaderBytes>());
  }

  static std::string AnswerToPush(uint64_t request) {
    std::vector<wire::PartReply> parts;
    for (uint32_t p = 0; p < kPartitions; ++p) parts.push_back({p, wire::PartCode::kOk, false});
    wire::Header reply;
    reply.kind = wire::Kind::kPushReply;
    reply.request = request;
    reply.parts = kPartitions;
    const std::string directory = wire::EncodeReply(parts, "");
    reply.directory_bytes = static_cast<uint32_t>(directory.size());
    std::array<std::byte, wire::kHeaderBytes> bytes;
    wire::EncodeHeader(reply, bytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + directory;
  }

  /// Rows of ones to a DensePull: of every part but 3, which is unchanged.
  static std::string AnswerToDensePull(uint64_t request, std::string_view text) {
    std::vector<wire::PartReply> parts;
    std::vector<uint64_t> versions;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      parts.push_back({p, wire::PartCode::kOk, false});
      versions.push_back(p == 3 ? 3 : 100 + p);
    }
    const std::vector<float> rows((kPartitions - 1) * 2, 1.0f);
    wire::Header reply;
    reply.kind = wire::Kind::kPullReply;
    reply.request = request;
    reply.parts = kPartitions;
    reply.versions = kPartitions;
    reply.value_bytes = rows.size() * sizeof(float);
    const std::string directory = wire::EncodeReply(parts, text, versions);
    reply.directory_bytes = static_cast<uint32_t>(directory.size());
    std::array<std::byte, wire::kHeaderBytes> bytes;
    wire::EncodeHeader(reply, bytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + directory +
           std::string(reinterpret_cast<const char*>(rows.data()), reply.value_bytes);
  }

  std::optional<net::RingMemory> memory_;
  std::optional<net::RingWriter> writer_;
  std::optional<net::RingReader> reader_;
};

TEST_F(RingLinkTest, RequestsGoAndAnswersComeThroughTheMemory) {
  EXPECT_EQ(hello_.ring_bytes_max, options_.ring_bytes_max);
  connection_->Send(Request(1, true));
  Turn();
  Enter();
  wire::Header header = ReadHeaderFromRing();
  EXPECT_EQ(header.kind, wire::Kind::kPush);
  EXPECT_EQ(header.checksum_kind, wire::Checksum::kNone) << "nothing can be damaged";
  ReadRing(header.directory_bytes + header.keys * 8 + header.value_bytes);
  WriteRing(AnswerToPush(header.request));
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_EQ(collector_.Wait(1).why, "");
  EXPECT_EQ(collector_.Wait(1).parts.size(), kPartitions);
  EXPECT_TRUE(sharing_.wanted);
}

TEST_F(RingLinkTest, RowsOfADenseTensorAreTakenWhereTheServerWroteThem) {
  Enter();
  uint64_t id = 0;
  // Behind a text of an odd length they are no floats yet.
  for (const std::string text : {"", "", "odd", "even", "odd"}) {
    connection_->Send(DensePull(++id));
    const wire::Header header = ReadHeaderFromRing();
    EXPECT_EQ(header.versions, kPartitions);
    ReadRing(header.directory_bytes + header.keys * 8);
    WriteRing(AnswerToDensePull(id, text));
    Turn();
    ASSERT_TRUE(collector_.Ended(id));
    const Collector::Answer answer = collector_.Wait(id);
    EXPECT_EQ(answer.why, "");
    EXPECT_EQ(answer.rows, std::vector<float>((kPartitions - 1) * 2, 1.0f));
    EXPECT_EQ(answer.versions.at(3), 3u);
    EXPECT_EQ(answer.versions.at(4), 104u);
    EXPECT_TRUE(id > 3 || answer.lent == text.empty());
  }
  // The client keeps nothing from the server.
  EXPECT_EQ(writer_->Room()->size(), kRingBytes);
}

TEST_F(RingLinkTest, WhoPollsGetsTheAnswerWithoutTheEventLoop) {
  Enter();
  ASSERT_TRUE(connection_->BeginPolling());
  connection_->Send(Request(1, true));
  ASSERT_GT(reader_->Bytes()->size(), wire::kHeaderBytes) << "a small request is written at once";
  EXPECT_FALSE(connection_->Poll());
  const std::string answer = AnswerToPush(1);
  const std::span<std::byte> room = writer_->Room().value();
  std::memcpy(room.data(), answer.data(), answer.size());
  EXPECT_FALSE(writer_->Publish(answer.size())) << "no side sleeps";
  while (!collector_.Ended(1)) ASSERT_TRUE(connection_->Poll());
  EXPECT_EQ(collector_.Wait(1).why, "");
  connection_->EndPolling();
  memory_->makers().control->written = ~0ull;
  Ring();
  Turn();
  EXPECT_FALSE(connection_->BeginPolling()) << "it is closed";
}

TEST_F(RingLinkTest, MoreThanTheRoomIsWrittenInPiecesAndInOrder) {
  Enter();
  for (uint64_t id = 1; id <= 3'000; ++id) connection_->Send(Request(id, true));
  for (uint64_t id = 1; id <= 3'000; ++id) {
    const wire::Header header = ReadHeaderFromRing();
    ASSERT_EQ(header.request, id);
    ReadRing(header.directory_bytes + header.keys * 8 + header.value_bytes);
  }
}

TEST_F(RingLinkTest, MemoryThatIsOfNoUseIsNotAskedForAgain) {
  connection_->Send(Request(1, true));
  Share(net::RingMemory::Make(2 * kRingBytes).value());  // not what was said
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("ps-0.0: its shared memory is of no use"));
  EXPECT_FALSE(sharing_.wanted);
  Connect();
  EXPECT_EQ(hello_.ring_bytes_max, 0u);
}

TEST_F(RingLinkTest, AServerThatSharesNothingAfterItsOfferIsGivenUp) {
  connection_->Send(Request(1, true));
  connection_->CheckSilence();  // sees that the greeting has come
  clock_.Advance(options_.connect_timeout * 2);
  connection_->CheckSilence();
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("does not greet"));
}

TEST_F(RingLinkTest, AnImpossibleCountOfTheServerEndsTheConnection) {
  Enter();
  connection_->Send(Request(1, true));
  Turn();
  memory_->makers().control->written = ~0ull;
  Ring();
  Turn();
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("the shared ring says that"));
}

TEST_F(RingLinkTest, AServerThatGoesIsSeenThroughItsSocket) {
  Enter();
  connection_->Send(Request(1, true));
  Turn();
  ::close(std::exchange(peer_, -1));
  Turn();
  ASSERT_TRUE(collector_.Ended(1));
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("ps-0.0: "));
}

class LargerRingLinkTest : public LinkFixture {
 protected:
  LargerRingLinkTest() : LinkFixture(ClientOptions(), ClientOptions().ring_bytes_max * 2) {}
};

TEST_F(LargerRingLinkTest, MoreThanWasAskedForIsRefused) {
  connection_->Send(Request(1, true));
  Turn();
  // The connection has ended: what is sent to it is unanswered at once, or without end.
  char byte = 0;
  EXPECT_EQ(::recv(peer_, &byte, 1, MSG_DONTWAIT), 0);
}

}  // namespace
}  // namespace muster::sdk
