// Waits for servers that keep silent, and the calls of SessionImpl that the public classes do not
// show.
#include <atomic>
#include <memory>
#include <thread>

#include "tests/worker_sdk/session/session_faults.h"
#include "worker_sdk/session/session_impl.h"

namespace muster {
namespace {

using ::testing::IsEmpty;

/// A server that answers pushes only after Release.
class SilentServerTest : public SessionWithFaultsTest {
 protected:
  SilentServerTest() {
    // The server's thread outlives this part of the fixture.
    server_->before_answer = [released = released_](const wire::Header& header) {
      while (header.kind == wire::Kind::kPush && !*released) std::this_thread::yield();
      return true;
    };
  }
  ~SilentServerTest() override { Release(); }
  void Release() { *released_ = true; }
  const std::shared_ptr<std::atomic<bool>> released_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(SilentServerTest, ACommitWaitsWhileTooManyAreNotAcknowledged) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = SumTable(session);
  std::thread relief([&] {
    // The job allows two. The third is counted when it is on its way.
    master_.WaitFor([&] { return master_.times.minibatches_finished == 3; });
    AwaitExchanges(3);  // time for the loop to do what it must not
    Release();
  });
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    batch.Commit();
    EXPECT_TRUE(*released_ || batch.step() < 2) << batch.step();
  }
  relief.join();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(1);
}

TEST_F(SilentServerTest, ACommitThatWaitsEndsWithTheLease) {
  AddShard("a");
  Session session = Connect();
  Table table = SumTable(session);
  std::thread expiry([&] {
    master_.WaitFor([&] { return master_.times.minibatches_finished == 3; });
    master_.HoldShards(true);
    master_.ExpireLeases();
  });
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    ++minibatches;
  }
  expiry.join();
  EXPECT_EQ(minibatches, 3);
  EXPECT_TRUE(session.status().ok());
}

TEST_F(SilentServerTest, ACommitThatWaitsEndsWithTheSession) {
  AddShard("a");
  Session session = Connect();
  Table table = SumTable(session);
  std::thread failure([&] {
    master_.WaitFor([&] { return master_.times.minibatches_finished == 3; });
    session.SparseTable({.name = "t", .dim = 3});
  });
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    ++minibatches;
  }
  failure.join();
  EXPECT_EQ(minibatches, 3);
  EXPECT_EQ(session.status().code(), Status::Code::kAlreadyExists);
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SilentServerTest, FinishWaitsForWhatALoopHasCompleted) {
  AddShard("a");
  Session session = Connect();
  Table table = SumTable(session);
  master_.Reply({});
  {
    std::optional<Shard> shard = session.NextShard();
    ASSERT_TRUE(shard.has_value());
    std::thread relief([&] {
      master_.WaitFor([&] { return master_.times.minibatches_finished == 3; });
      Release();
    });
    for (Minibatch& batch : shard->Minibatches()) PushOnes(table, batch);
    relief.join();
  }
  EXPECT_EQ(session.Finish(), 1) << "the job goes on";
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_THAT(master_.returned, IsEmpty());
  ExpectRows(1);
}

/// The calls of the loops' parts, which the public classes do not show.
class SessionCallsTest : public SessionWithFaultsTest {
 protected:
  SessionCallsTest() { AddShard("a"); }
  internal::RunRef RunOf(const internal::SessionImpl::NextResult& next) {
    return {next.shard.grant.token, next.shard.run};
  }
};

TEST_F(SessionCallsTest, AWaitInARunGoesOnUntilTheRunTheSessionOrTheWorkerEnds) {
  auto session = *internal::SessionImpl::Connect(Options());
  const auto next = session->NextShard();
  ASSERT_TRUE(next.has_value());
  sdk::KeepWaiting for_records = session->WaitingFor(RunOf(*next), "records", /*leaving=*/false);
  sdk::KeepWaiting for_rejected = session->WaitingFor(RunOf(*next), "rejected", /*leaving=*/true);
  EXPECT_TRUE(for_records(""));
  EXPECT_TRUE(for_rejected(""));
  sdk::KeepWaiting of_another_run = session->WaitingFor(
      {next->shard.grant.token, RunNumber(next->shard.run.value() + 1)}, "records", true);
  EXPECT_FALSE(of_another_run("")) << "the run is over";
  session->Leave();
  EXPECT_FALSE(for_records("")) << "nobody needs the records";
  EXPECT_TRUE(for_rejected("")) << "the loop may finish its shard";
  session->ProgramError("wrong");
  EXPECT_FALSE(for_rejected(""));
}

TEST_F(SessionCallsTest, ATableOfAnotherSessionIsAnErrorOfTheProgram) {
  auto session = *internal::SessionImpl::Connect(Options());
  EXPECT_EQ(session->FindTable(TableId(7)), nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(session->status()));
  EXPECT_THAT(std::string(session->status().message()), HasSubstr("table 7 is not one of this"));
}

TEST_F(SessionCallsTest, AFailedSessionTakesNoMinibatchAndAnswersNoPull) {
  auto session = *internal::SessionImpl::Connect(Options());
  const auto next = session->NextShard();
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(session->Holds(RunOf(*next)));
  EXPECT_TRUE(session->StartMinibatch(RunOf(*next)));
  EXPECT_EQ(*ParseSlot(*ReadFile(dir_.File("slot"), 4'096)),
            (SlotRecord{.incarnation = session->incarnation(),
                        .computing = {{next->shard.grant.token, 1}}}));
  session->ProgramError("first");
  session->ProgramError("second");
  EXPECT_EQ(session->status().message(), "first");
  EXPECT_FALSE(session->StartMinibatch(RunOf(*next)));
  session->CommitMinibatch(RunOf(*next), MinibatchIndex(0), 4, {},
                           sdk::MakePooled<sdk::RowBatch>());
  master_.WaitFor([&] { return master_.returned.size() == 1; });
  EXPECT_EQ(master_.times.minibatches_finished, 0u);
  session->GiveUp(RunOf(*next));
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->computing.empty());
}

TEST_F(SessionCallsTest, AFailureWithoutAReasonSaysSo) {
  auto session = *internal::SessionImpl::Connect(Options());
  const auto next = session->NextShard();
  ASSERT_TRUE(next.has_value());
  session->GiveUp(RunOf(*next), sdk::ShardFailure{});
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_EQ(master_.returned[0].reason, "the trainer gave no reason");
}

}  // namespace
}  // namespace muster
