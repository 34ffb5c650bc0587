#include "worker_sdk/net/data_client.h"

#include <map>

#include "base/mutex.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "tests/worker_sdk/net/fake_data_server.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Collects what the client reports; tests wait for it.
class Collector final : public DataClient::Listener {
 public:
  struct Answer {
    std::vector<wire::PartReply> parts;
    std::vector<float> rows;
    std::string why;  // unanswered
  };
  void OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
               std::shared_ptr<const float[]> rows, std::string_view) override {
    MutexLock lock(&mutex_);
    Answer& answer = answers_[request.id];
    answer.parts.assign(parts.begin(), parts.end());
    size_t floats = 0;
    for (size_t i = 0; rows && i < parts.size(); ++i) {
      if (parts[i].code != wire::PartCode::kOk) continue;
      floats += request.batch->plan.parts[request.items[i].part].value_count;
    }
    if (rows) answer.rows.assign(rows.get(), rows.get() + floats);
    changed_.SignalAll();
  }
  void OnUnanswered(RequestId id, std::string_view why) override {
    MutexLock lock(&mutex_);
    answers_[id].why = why;
    changed_.SignalAll();
  }
  void OnTimer() override {
    MutexLock lock(&mutex_);
    ++timers_;
    changed_.SignalAll();
  }
  Answer Wait(uint64_t id) {
    MutexLock lock(&mutex_);
    while (!answers_.contains(RequestId(id))) changed_.Wait(&mutex_);
    return answers_[RequestId(id)];
  }
  void WaitForTimer() {
    MutexLock lock(&mutex_);
    while (timers_ == 0) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<RequestId, Answer> answers_ MUSTER_GUARDED_BY(mutex_);
  int timers_ MUSTER_GUARDED_BY(mutex_) = 0;
};

SendRequest Request(uint64_t id, bool push, uint64_t incarnation = 1) {
  SendRequest request;
  request.id = RequestId(id);
  request.lane = {ServerId(0), ServerIncarnation(incarnation), 0};
  if (push)
    request.push = PushIdentity{{}, MinibatchIndex(static_cast<uint32_t>(id)), {}, {}, 0, {}};
  request.batch = BatchOfAllPartitions();
  for (uint32_t part = 0; part < kPartitions; ++part)
    request.items.push_back({part, OwnerEpoch(1)});
  return request;
}

std::vector<ServerEndpoint> Servers(std::vector<std::string> addresses, uint64_t incarnation = 1) {
  return {{ServerId(0), ServerIncarnation(incarnation), "ps-0", {std::move(addresses)}}};
}

DataClient::Options ClientOptions() {
  DataClient::Options options;
  options.job = "job";
  options.worker = "worker-0";
  options.partition_count = kPartitions;
  return options;
}

class DataClientTest : public ::testing::TestWithParam<wire::Encoding> {
 protected:
  void Start(DataClient::Options options = ClientOptions()) {
    client_ = std::make_unique<DataClient>(options, &collector_);
    client_->Start();
  }
  Collector collector_;
  std::unique_ptr<DataClient> client_;
};

TEST_P(DataClientTest, PushesAndPullsOverOneUnixConnection) {
  muster::testing::TempDir dir;
  FakeDataServer server({.unix_path = dir.File("s")});
  DataClient::Options options = ClientOptions();
  options.encoding = GetParam();
  Start(options);
  client_->SetServers(Servers({server.address()}));
  std::vector<SendRequest> requests;
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
INSTANTIATE_TEST_SUITE_P(Encodings, DataClientTest,
                         ::testing::Values(wire::Encoding::kFloat32, wire::Encoding::kFloat16,
                                           wire::Encoding::kBfloat16));

TEST_F(DataClientTest, FallsBackToTcpWhereTheUnixPathIsNot) {
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({"unix:/nowhere/at/all", server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
}

TEST_F(DataClientTest, RefusedPartsBringNoRows) {
  FakeDataServer server({});
  server.refuse = [](uint32_t partition) {
    return partition % 2 == 0 ? wire::PartCode::kRetry : wire::PartCode::kOk;
  };
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, false)});
  EXPECT_EQ(collector_.Wait(1).rows.size(), kPartitions / 2 * 2);
}

TEST_F(DataClientTest, EverythingOutstandingOnALostConnectionIsUnanswered) {
  FakeDataServer server({});
  std::atomic<int> seen = 0;
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
  FakeDataServer server({});
  std::atomic<bool> hang = true;
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

TEST_F(DataClientTest, AnotherJobOrIncarnationIsNotUsed) {
  FakeDataServer server({.job = "other"});
  Start();
  client_->SetServers(Servers({server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, HasSubstr("works for job other"));
  FakeDataServer newer({.incarnation = 5});
  client_->SetServers(Servers({newer.address()}, 4));
  client_->Send({Request(2, true, 4)});
  EXPECT_THAT(collector_.Wait(2).why, HasSubstr("incarnation is 5"));
  EXPECT_EQ(newer.parts_applied(), 0);
}

TEST_F(DataClientTest, ADamagedAnswerEndsTheConnectionOnly) {
  FakeDataServer server({});
  std::atomic<int> answers = 0;
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

TEST_F(DataClientTest, ASilentServerIsGivenUp) {
  FakeDataServer server({});
  std::atomic<bool> hang = true;
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

TEST_F(DataClientTest, TimersFireAndStopIsIdempotent) {
  Start();
  client_->SetTimer(TimePoint());
  collector_.WaitForTimer();
  client_->Stop();
  client_->Stop();
  client_->Send({Request(1, true)});
}

}  // namespace
}  // namespace muster::sdk
