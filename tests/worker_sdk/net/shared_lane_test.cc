// A client and a real lane that share memory: threads that send, and that wait by looking for
// answers themselves, beside the I/O thread.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ps/net/lane.h"
#include "tests/ps/net/fake_handler.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/client_fixture.h"

namespace muster::sdk {
namespace {

constexpr uint32_t kParts = 4;
constexpr uint32_t kDim = ps::testing::FakeHandler::kDim;
constexpr LaneAddress kLane = {ServerId(0), ServerIncarnation(7), 1};

class SharedLaneTest : public ClientFixture {
 protected:
  SharedLaneTest()
      : lane_({.name = "ps-0.1", .unix_path = dir_.File("lane"), .limits = {}, .clock = &clock_},
              &handler_) {
    addresses_ = lane_.Listen().value();
    lane_.Start();
    DataClient::Options options = ClientOptions();
    options.partition_count = 16;
    Start(options);
    client_->SetServers({{kLane.server, kLane.incarnation, "ps-0", {{}, addresses_}}});
  }
  ~SharedLaneTest() override { client_->Stop(); }

  /// One key in each of the parts: `first`, `first` + 1, ...
  static SendRequest RequestOf(uint64_t id, uint64_t first, bool push) {
    auto batch = std::make_shared<RowBatch>();
    for (uint32_t part = 0; part < kParts; ++part) {
      batch->plan.keys.push_back(first + part);
      batch->plan.groups.push_back({TableId(1), kDim, 1});
      batch->plan.parts.push_back({.partition = PartitionId(part),
                                   .key_begin = part,
                                   .key_count = 1,
                                   .value_begin = uint64_t{part} * kDim,
                                   .value_count = kDim,
                                   .group_begin = part,
                                   .group_count = 1});
    }
    batch->plan.value_count = uint64_t{kParts} * kDim;
    if (push) batch->values.assign(batch->plan.value_count, 1.0f);
    SendRequest request;
    request.id = RequestId(id);
    request.lane = kLane;
    if (push) request.push = PushIdentity{};
    request.batch = batch;
    for (uint32_t part = 0; part < kParts; ++part) request.items.push_back({part, OwnerEpoch(1)});
    request.keys = kParts;
    request.floats = batch->plan.value_count;
    return request;
  }
  Collector::Answer Ask(uint64_t id, bool push, std::chrono::nanoseconds budget) {
    client_->Send({RequestOf(id, 10 * id, push)});
    client_->Spin([&] { return collector_.Ended(id); }, budget);
    return collector_.Wait(id);
  }

  muster::testing::TempDir dir_;
  SystemClock clock_;
  ps::testing::FakeHandler handler_;
  ps::Lane lane_;
  std::vector<std::string> addresses_;
};

TEST_F(SharedLaneTest, ThreadsThatSpinAndThreadsThatSleepGetTheirOwnAnswers) {
  constexpr uint64_t kThreads = 3, kEach = 400;
  std::atomic<int> lent = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t id = 1 + i * kThreads + t;
        const bool push = i % 4 == 3;
        // Every third waits asleep, for the I/O thread.
        const auto budget = std::chrono::milliseconds(i % 3 == 0 ? 0 : 20);
        const Collector::Answer answer = Ask(id, push, budget);
        ASSERT_EQ(answer.why, "");
        ASSERT_EQ(answer.parts.size(), kParts);
        for (size_t f = 0; f < answer.rows.size(); ++f) {
          ASSERT_EQ(answer.rows[f], static_cast<float>(10 * id + f / kDim));
        }
        ASSERT_EQ(answer.rows.size(), push ? 0 : kParts * kDim);
        lent += answer.lent;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  client_->Stop();
  lane_.Stop();
  EXPECT_EQ(handler_.pulls, 3 * kThreads * kEach / 4);
  EXPECT_GT(handler_.pulls_in_place, 0) << "they share no memory";
  // Behind a text of an odd length they are copied first.
  EXPECT_GT(lent, 0) << "rows are not taken where the server wrote them";
}

TEST_F(SharedLaneTest, WhoSpinsHearsThatTheServerIsGone) {
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t id = 1 + t; Ask(id, false, std::chrono::seconds(20)).why.empty(); id += 2) {
        ++answered;
      }
    });
  }
  while (answered < 100) std::this_thread::yield();
  lane_.Stop();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SharedLaneTest, SpinEndsWhenNothingComes) {
  EXPECT_EQ(Ask(1, false, std::chrono::milliseconds(1)).why, "");
  client_->Spin([] { return false; }, std::chrono::microseconds(10));
  EXPECT_EQ(Ask(2, false, std::chrono::milliseconds(1)).why, "");
}

}  // namespace
}  // namespace muster::sdk
