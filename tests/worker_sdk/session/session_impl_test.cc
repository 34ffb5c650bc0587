#include "worker_sdk/session/session_impl.h"

#include <filesystem>
#include <memory>
#include <thread>

#include "proto/exported/sha256.h"
#include "tests/proto/exported/sample_export.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/sanitizers.h"
#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

using SessionImplTest = SessionTest;

TEST_F(SessionImplTest, TrainsEveryShardOnceAndEnds) {
  AddShard("a");
  AddShard("b");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(2);
  EXPECT_EQ(master_.done.size(), 2u);
  EXPECT_EQ(master_.done[0].metrics.records, kLines);
  EXPECT_EQ(server_->parts_skipped(), 0);
  std::optional<SlotRecord> slot = ParseSlot(*ReadFile(dir_.File("slot"), 4'096));
  EXPECT_TRUE(slot->ended);
  EXPECT_TRUE(slot->computing.empty());
}

TEST_F(SessionImplTest, TheMasterIsToldWhatWasDoneAndWhereTheTimeWent) {
  AddShard("a");
  AddShard("b", DatasetMode::kEvaluate);
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  for (int i = 0; i < 2; ++i) {
    std::optional<Shard> shard = session.NextShard();
    for (Minibatch& batch : shard->Minibatches()) {
      batch.Pull(table, KeysOf(batch));
      if (!shard->evaluate()) PushOnes(table, batch);
      batch.Commit();
    }
  }
  constexpr uint64_t kMinibatches = 2 * kLines / kMinibatch;
  master_.WaitFor([&] { return master_.times.minibatches_finished == kMinibatches; });
  master_.WaitFor([&] { return !master_.peers.empty() && master_.peers[0].pulls >= kMinibatches; });
  master_.WaitFor([&] {
    const WorkerTimes& times = master_.times;
    EXPECT_EQ(times.minibatches_begun, kMinibatches);
    EXPECT_EQ(times.records_trained, kLines);
    EXPECT_EQ(times.records_evaluated, kLines);
    EXPECT_GT(times.compute_us, 0u);
    EXPECT_LE(times.compute_us + times.wait_shard_us + times.wait_pull_us + times.wait_push_us,
              times.total_us)
        << "one loop does one thing at a time";
    EXPECT_GT(master_.peers[0].pull_us, 0u);
    EXPECT_EQ(master_.peers[0].incarnation, ServerIncarnation(1));
    return true;
  });
  master_.EndWhenDone();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
}

TEST_F(SessionImplTest, ATrainerThatLeavesEndsWellAndHandsBackTheRest) {
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  {
    std::optional<Shard> shard = session.NextShard();
    master_.WaitFor([&] { return master_.leases.size() == 2; });
    session.Leave();
    session.Leave();
    for (Minibatch& batch : shard->Minibatches()) {
      PushOnes(table, batch);
      batch.Commit();
    }
  }
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(master_.returned.size(), 1u);
  ExpectRows(1);
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->ended);
}

TEST_F(SessionImplTest, LeavingBeforeTheEndIsNoSuccess) {
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  {
    std::optional<Shard> shard = session.NextShard();
  }
  EXPECT_EQ(session.Finish(), 1);
  EXPECT_TRUE(session.status().ok());
  EXPECT_GE(master_.returned.size(), 1u);
}

TEST_F(SessionImplTest, FinishHandsBackWhatIsStillInALoopAndSaysTheSameAgain) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  MinibatchRange minibatches = shard->Minibatches();
  MinibatchRange::Iterator at = minibatches.begin();
  PushOnes(table, *at);
  EXPECT_EQ(session.Finish(), 1);
  ASSERT_EQ(master_.returned.size(), 1u);
  EXPECT_EQ(master_.returned[0].failed, false);
  EXPECT_EQ(master_.returned[0].hand_back, HandBack::kUncharged);
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->computing.empty())
      << "an exit with this code must not be charged to the shard";
  EXPECT_TRUE(++at == minibatches.end());
  EXPECT_EQ(server_->parts_applied(), 0);
  // The master's answer to an exchange that began after the drain has been taken.
  master_.Drain();
  int exchanges = 0;
  master_.WaitFor([&] { return ++exchanges > 3; });
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SessionImplTest, FinishAfterLeaveHandsBackLoopsThatWereNotRunToTheirEnd) {
  AddShard("a");
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  session.Leave();
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.returned.size(), 1u);
  EXPECT_EQ(master_.returned[0].failed, false);
  EXPECT_EQ(master_.returned[0].hand_back, HandBack::kUncharged);
  EXPECT_EQ(session.Finish(), 0);
}

TEST_F(SessionImplTest, WithoutDescriptorsShardsGoBackUnchargedUntilThereAreSome) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer needs descriptors itself";
  master_.HoldShards(true);
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  // The first exchange makes the connection; gRPC's server never accepts another one after it
  // failed for want of descriptors.
  master_.WaitFor([&] { return master_.exchanges > 0; });
  auto limit = std::make_unique<testing::DescriptorLimit>(testing::DescriptorLimit::kNone);
  master_.HoldShards(false);
  std::thread relief([&] {
    master_.WaitFor([&] { return master_.returned.size() >= 2; });
    limit.reset();
  });
  Train(session, table);
  relief.join();
  EXPECT_EQ(session.Finish(), 0);
  for (const ReturnedLease& lease : master_.returned) {
    EXPECT_FALSE(lease.failed);
    EXPECT_EQ(lease.hand_back, HandBack::kShortage);
    EXPECT_THAT(lease.reason, HasSubstr("Too many open files"));
  }
  EXPECT_EQ(master_.done.size(), 1u);
  ExpectRows(1);
}

TEST_F(SessionImplTest, AConflictingTableFailsTheSessionAndShowsBoth) {
  AddShard("a");
  Session session = Connect();
  session.SparseTable({.name = "t", .dim = 2});
  Table bad = session.SparseTable({.name = "t", .dim = 3});
  EXPECT_EQ(session.status().code(), Status::Code::kAlreadyExists);
  EXPECT_THAT(session.status().message(), HasSubstr("against"));
  EXPECT_EQ(bad.width(), 3u);
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SessionImplTest, AnExportIsCheckedAndPinnedByTheFirstToRegister) {
  const std::string folder = dir_.File("out");
  ASSERT_TRUE(testing::WriteSampleExport(folder, testing::SampleExport()).ok());
  Session first = Connect();
  first.SparseTable({.name = "t", .dim = 2, .warm_start = folder});
  first.DenseTable({.name = "w", .shape = {3}, .warm_start = folder});
  EXPECT_TRUE(first.status().ok()) << first.status().message();
  ASSERT_EQ(master_.tables.size(), 2u);
  EXPECT_EQ(master_.tables[0].warm_start_hash, *Sha256OfFile(folder + "/SHA256SUMS"));
  std::filesystem::remove_all(folder);
  Session second = Connect();
  second.SparseTable({.name = "t", .dim = 2, .warm_start = folder});
  EXPECT_TRUE(second.status().ok()) << "the master knows the table; " << second.status().message();
}

TEST_F(SessionImplTest, AnExportThatDoesNotFitFailsTheSessionAndSaysWhy) {
  const std::string folder = dir_.File("out");
  const auto error = [&](SparseTableOptions options) {
    Session session = Connect();
    options.warm_start = folder;
    session.SparseTable(options);
    EXPECT_EQ(session.status().code(), Status::Code::kFailedPrecondition);
    return session.status().message();
  };
  EXPECT_THAT(error({.name = "t", .dim = 2}), HasSubstr("not a folder written by"));
  auto files = testing::SampleExport();
  ASSERT_TRUE(testing::WriteSampleExport(folder, files).ok());
  EXPECT_THAT(error({.name = "t", .dim = 3}), HasSubstr("shape (2, 2)"));
  EXPECT_THAT(error({.name = "u", .dim = 2}), HasSubstr("no sparse table 'u'"));
  ASSERT_TRUE(WriteFileAtomically(folder + "/t.values.npy", "changed").ok());
  EXPECT_THAT(error({.name = "t", .dim = 2}), HasSubstr("does not have the sum"));
  EXPECT_TRUE(master_.tables.empty());
}

TEST_F(SessionImplTest, ConnectSaysWhatIsWrong) {
  EXPECT_EQ(Session::Connect({}).status().code(), Status::Code::kInvalidArgument);
  master_.WaitFor([&] {
    master_.refuse_hello = "SDK 0.1 against master 0.2";
    return true;
  });
  Result<Session> refused =
      Session::Connect({.master_address = master_.address(), .worker_name = "worker-0"});
  EXPECT_EQ(refused.status().code(), Status::Code::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("0.2"));
  master_.WaitFor([&] {
    master_.refuse_hello.clear();
    return true;
  });
  Result<Session> other = Session::Connect({.master_address = master_.address(),
                                            .worker_name = "worker-0",
                                            .connect_timeout_ms = 1,
                                            .job_id = "id-2"});
  EXPECT_EQ(other.status().code(), Status::Code::kUnavailable);
  EXPECT_THAT(other.status().message(), AllOf(HasSubstr("id id-1"), HasSubstr("job id id-2")));
  EXPECT_THAT(Session::Connect({.master_address = "x", .worker_name = "w", .job_id = "a b"})
                  .status()
                  .message(),
              HasSubstr("MUSTER_JOB_ID"));
  master_.Reply([](v1::HelloResponse* response) { response->clear_job_id(); });
  EXPECT_THAT(Session::Connect({.master_address = master_.address(), .worker_name = "w"})
                  .status()
                  .message(),
              HasSubstr("which job it has"));
  master_.Kill();
  Result<Session> unreached = Session::Connect(
      {.master_address = master_.address(), .worker_name = "worker-0", .connect_timeout_ms = 1});
  EXPECT_EQ(unreached.status().code(), Status::Code::kUnavailable);
  EXPECT_THAT(unreached.status().message(), HasSubstr(master_.address()));
}

}  // namespace
}  // namespace muster
