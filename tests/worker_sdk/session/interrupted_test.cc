// SessionOptions::interrupted: every wait asks, and ends when it is told to.
#include <atomic>
#include <memory>
#include <thread>

#include "tests/worker_sdk/session/session_faults.h"
#include "worker_sdk/session/session_impl.h"

namespace muster {
namespace {

using Code = Status::Code;

/// A server that answers nothing, and a session that is told to end when it asks for the third time
/// after Arm.
class InterruptedTest : public SessionWithFaultsTest {
 protected:
  InterruptedTest() {
    server_->before_answer = [silent = silent_](const wire::Header&) {
      while (*silent) std::this_thread::yield();
      return true;
    };
  }
  ~InterruptedTest() override { *silent_ = false; }
  SessionOptions AskedOptions() {
    SessionOptions options = Options();
    options.interrupted = [this] { return armed_ && ++asked_ >= 3; };
    return options;
  }
  void Arm() { armed_ = true; }
  Session ConnectAsked() { return Session::Connect(AskedOptions()).value(); }
  const std::shared_ptr<std::atomic<bool>> silent_ = std::make_shared<std::atomic<bool>>(true);
  std::atomic<bool> armed_ = false;
  std::atomic<int> asked_ = 0;
};

TEST_F(InterruptedTest, AWaitForAShardEnds) {
  Session session = ConnectAsked();
  Arm();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(session.status().code(), Code::kInterrupted);
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(InterruptedTest, APullEndsWithZerosAndTheShardGoesBackUncharged) {
  AddShard("a");
  Session session = ConnectAsked();
  const Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  Arm();
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    const Rows rows = batch.Pull(table, std::vector<uint64_t>{1});
    EXPECT_THAT(rows[0], ElementsAre(0, 0));
    ++minibatches;
  }
  EXPECT_EQ(minibatches, 1);
  EXPECT_EQ(session.status().code(), Code::kInterrupted);
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_FALSE(master_.returned[0].failed);
}

TEST_F(InterruptedTest, TheNextMinibatchEnds) {
  AddShard("a");
  Session session = ConnectAsked();
  const Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  Arm();
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    ++minibatches;
  }
  EXPECT_EQ(minibatches, 3) << "the job allows two that are not acknowledged";
  EXPECT_EQ(session.status().code(), Code::kInterrupted);
}

TEST_F(InterruptedTest, FinishEnds) {
  AddShard("a");
  Session session = ConnectAsked();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  master_.Plant({.exchange = Times(1'000'000, grpc::StatusCode::UNAVAILABLE)});
  Arm();
  for ([[maybe_unused]] Minibatch& batch : shard->Minibatches()) {
  }
  shard.reset();
  EXPECT_EQ(session.Finish(), 1);
  EXPECT_EQ(session.status().code(), Code::kInterrupted);
}

TEST_F(InterruptedTest, AReaderThatWaitsEnds) {
  AddShard("a");
  auto session = *internal::SessionImpl::Connect(AskedOptions());
  const auto next = session->NextShard();
  ASSERT_TRUE(next.has_value());
  Arm();
  const sdk::KeepWaiting keep_waiting =
      session->WaitingFor({next->shard.grant.token, next->shard.run}, "records", /*leaving=*/false);
  while (keep_waiting("")) std::this_thread::yield();
  EXPECT_EQ(asked_, 3);
  EXPECT_TRUE(absl::IsCancelled(session->status()));
}

TEST_F(InterruptedTest, ConnectEnds) {
  SessionOptions options = AskedOptions();
  options.master_address = "127.0.0.1:1";
  options.connect_timeout_ms = 600'000;
  Arm();
  const Result<Session> session = Session::Connect(options);
  EXPECT_EQ(session.status().code(), Code::kInterrupted);
  EXPECT_EQ(asked_, 3);
}

TEST_F(InterruptedTest, WhatIsAskedMayTellTheSessionToLeave) {
  Session* asking = nullptr;
  SessionOptions options = Options();
  options.interrupted = [&] {
    EXPECT_TRUE(asking->status().ok());
    asking->Leave();
    return false;
  };
  Session session = Session::Connect(options).value();
  asking = &session;
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
}

}  // namespace
}  // namespace muster
