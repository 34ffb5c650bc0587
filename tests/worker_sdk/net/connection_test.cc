#include "worker_sdk/net/internal/connection.h"

#include <cstring>

#include "tests/worker_sdk/net/client_fixture.h"

namespace muster::sdk {
namespace {

using ::testing::HasSubstr;

using ConnectionTest = ClientFixture;

TEST_F(ConnectionTest, FallsBackToTcpWhereTheUnixPathIsNot) {
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({"unix:/nowhere/at/all", server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
}

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

}  // namespace
}  // namespace muster::sdk
