#include "muster/muster.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <thread>

#include "base/file.h"
#include "sharding/slot_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/fake_data_server.h"
#include "tests/worker_sdk/session/fake_master.h"

namespace muster {
namespace {

using sdk::FakeDataServer;
using sdk::FakeMaster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kPartitions = 8;
constexpr uint32_t kLines = 24, kMinibatch = 4;

/// One worker's session against a fake master and a fake server. Line i of every file is the text
/// "i"; the trainer pushes, per record, (1, i) to row i of a table of two columns.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : master_(kPartitions) { NewServer(1); }
  /// A server that has lost every row, in a new incarnation.
  void NewServer(uint64_t incarnation) {
    server_ = std::make_unique<FakeDataServer>(FakeDataServer::Options{
        .incarnation = incarnation, .partition_count = kPartitions, .dim = 2});
    master_.SetServer(server_->address(), incarnation);
  }
  std::string AddShard(const std::string& name, DatasetMode mode = DatasetMode::kTrain) {
    std::string path = dir_.File(name);
    std::ofstream file(path);
    for (uint32_t i = 0; i < kLines; ++i) file << i << "\n";
    file.close();
    master_.AddShard(path, kMinibatch, mode);
    return path;
  }
  Session Connect() {
    Result<Session> session = Session::Connect({.master_address = master_.address(),
                                                .worker_name = "worker-0",
                                                .slot_file = dir_.File("slot")});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(session).value();
  }
  static std::vector<uint64_t> KeysOf(const Minibatch& batch) {
    std::vector<uint64_t> keys;
    for (std::string_view record : batch.records())
      keys.push_back(std::stoull(std::string(record)));
    return keys;
  }
  static void PushOnes(const Table& table, Minibatch& batch) {
    std::vector<uint64_t> keys = KeysOf(batch);
    std::vector<float> gradients;
    for (uint64_t key : keys) gradients.insert(gradients.end(), {1, static_cast<float>(key)});
    batch.Push(table, keys, gradients);
  }
  /// The whole loop of a plain trainer.
  static void Train(Session& session, const Table& table) {
    while (std::optional<Shard> shard = session.NextShard()) {
      for (Minibatch& batch : shard->Minibatches()) {
        PushOnes(table, batch);
        batch.Commit();
      }
    }
  }
  void ExpectRows(float times) {
    EXPECT_EQ(server_->rows(), kLines);
    for (uint64_t key = 0; key < kLines; ++key) {
      EXPECT_THAT(server_->Row(1, key), ElementsAre(times, times * static_cast<float>(key))) << key;
    }
  }

  muster::testing::TempDir dir_;
  FakeMaster master_;
  std::unique_ptr<FakeDataServer> server_;
};

TEST_F(SessionTest, TrainsEveryShardOnceAndEnds) {
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
  std::optional<SlotRecord> slot = ParseSlot(*ReadFile(dir_.File("slot"), 100));
  EXPECT_TRUE(slot->ended);
  EXPECT_EQ(slot->computing_token, LeaseToken());
}

TEST_F(SessionTest, PrepareRunsAheadAndPullsAreThere) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  DenseTensor bias = session.DenseTable({.name = "b", .shape = {2}, .optimizer = Sum{}});
  std::vector<uint64_t> prepared, steps;
  auto prepare = [&](Minibatch& batch) {
    std::vector<uint64_t> keys = KeysOf(batch);
    keys.insert(keys.end(), {keys[0], 0});
    prepared.push_back(keys[0]);
    batch.user_data() = keys;
    batch.Need(table, keys);
    batch.Need(bias);
  };
  while (std::optional<Shard> shard = session.NextShard()) {
    EXPECT_EQ(shard->id(), "train/0/0");
    for (Minibatch& batch : shard->Minibatches(prepare)) {
      auto keys = std::any_cast<std::vector<uint64_t>>(batch.user_data());
      EXPECT_EQ(prepared.size(), std::min<size_t>(steps.size() + 3, kLines / kMinibatch));
      Rows rows = batch.Pull(table, keys);
      ASSERT_EQ(rows.num_keys(), kMinibatch + 2);
      EXPECT_EQ(rows[0][0], rows[kMinibatch][0]);
      // What earlier minibatches pushed may be there or not; this one's own rows are not.
      EXPECT_EQ(rows[1][1], 0);
      Rows tensor = batch.Pull(bias);
      EXPECT_EQ(tensor.dim(), 2u);
      steps.push_back(batch.step());
      PushOnes(table, batch);
      batch.Push(bias, std::vector<float>{1, 2});
      batch.Commit();
      // A pull that was not announced waits for its answer.
      batch.Pull(table, std::vector<uint64_t>{1000});
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(server_->Row(2, 0), ElementsAre(6, 12));
}

TEST_F(SessionTest, ReverifyBringsTheShardBackAndRestoredRowsAreWholeAgain) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  int runs = 0;
  while (std::optional<Shard> shard = session.NextShard()) {
    ++runs;
    for (Minibatch& batch : shard->Minibatches()) {
      PushOnes(table, batch);
      batch.Metric("loss", 1, 1);
      batch.Commit();
      if (runs == 1 && batch.step() == 3) {  // the server dies with all rows
        server_->Kill();
        NewServer(2);
      }
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(master_.reverified, 1);
  EXPECT_EQ(master_.done[0].run, 1u);
  EXPECT_EQ(master_.done[0].metrics.means["loss"].weight, kLines / kMinibatch);
  ExpectRows(1);
}

TEST_F(SessionTest, ALostLeaseEndsTheLoopAndTheShardComesAgain) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  int first_run = 0;
  bool expired = false;
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      if (!expired) {
        ++first_run;
        LeaseToken before;
        master_.WaitFor([&] {
          before = master_.leases[0].token;
          return true;
        });
        master_.ExpireLeases();
        master_.WaitFor(
            [&] { return master_.leases.contains(0) && master_.leases[0].token != before; });
        // The next grant comes in the answer that says "lost".
        Rows rows = batch.Pull(table, KeysOf(batch));
        EXPECT_EQ(rows.num_keys(), kMinibatch);
        expired = true;
      }
      PushOnes(table, batch);
      batch.Commit();
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_LE(first_run, 2);
  ExpectRows(1);
}

TEST_F(SessionTest, AMasterRestartIsSurvivedAndLeasesReasserted) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    if (++minibatches == 2) master_.Kill();
    PushOnes(table, batch);
    batch.Commit();
  }
  EXPECT_EQ(minibatches, static_cast<int>(kLines / kMinibatch));
  master_.EndWhenDone();
  master_.Restart();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.reasserted, 1);
  ExpectRows(1);
}

TEST_F(SessionTest, EvaluationReportsMetricsAndRefusesPush) {
  AddShard("a", DatasetMode::kEvaluate);
  master_.EndWhenDone();
  Session session = Connect();
  session.SparseTable({.name = "t", .dim = 2});
  while (std::optional<Shard> shard = session.NextShard()) {
    EXPECT_TRUE(shard->evaluate());
    for (Minibatch& batch : shard->Minibatches()) {
      EXPECT_TRUE(batch.evaluate());
      EXPECT_EQ(batch.dataset(), "test");
      batch.Metric("logloss", 0.5, kMinibatch);
      std::array<bool, 2> labels = {true, false};
      batch.Auc("auc", std::vector<float>{0.9f, 0.1f}, labels);
      if (batch.step() == 0) batch.Reject(1, "no label");
      if (batch.step() == 0) batch.Reject(1, "twice counts once");
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  const ShardMetrics& metrics = master_.done[0].metrics;
  EXPECT_EQ(metrics.means.at("logloss"), (WeightedMean{kLines * 0.5, kLines}));
  EXPECT_EQ(muster::Auc(metrics.aucs.at("auc")), 1.0);
  EXPECT_EQ(metrics.rejected_records, 1u);
  EXPECT_THAT(metrics.reject_samples, ElementsAre(dir_.File("a") + ":2: no label"));
  EXPECT_EQ(server_->rows(), 0u);
}

TEST_F(SessionTest, PushInEvaluationIsAnErrorOfTheProgram) {
  AddShard("a", DatasetMode::kEvaluate);
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2});
  std::optional<Shard> shard = session.NextShard();
  for (Minibatch& batch : shard->Minibatches()) PushOnes(table, batch);
  EXPECT_THAT(session.status().message(), HasSubstr("evaluate dataset \"test\""));
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SessionTest, NotANumberIsRefusedBeforeAnyPartLeaves) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "embedding", .dim = 2});
  std::optional<Shard> shard = session.NextShard();
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    ++minibatches;
    std::vector<float> gradients(4, 1.0f);
    gradients[3] = std::numeric_limits<float>::quiet_NaN();
    batch.Push(table, std::vector<uint64_t>{5, 6}, gradients);
    batch.Commit();
  }
  EXPECT_EQ(minibatches, 1);
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_THAT(*master_.returned[0].failure, HasSubstr("\"embedding\" is nan (key 6, column 1"));
  EXPECT_FALSE(master_.returned[0].fatal);
  EXPECT_EQ(server_->parts_applied(), 0);
}

TEST_F(SessionTest, FailedAndAbandonedShardsGoBack) {
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  session.NextShard()->Fail("cannot");
  {
    std::optional<Shard> left = session.NextShard();
  }
  master_.WaitFor([&] { return master_.returned.size() >= 2; });
  EXPECT_EQ(master_.returned[0].failure, "shard train/0/0: cannot");
  EXPECT_EQ(master_.returned[1].failure, std::nullopt);
}

TEST_F(SessionTest, AChangedSourceIsFatal) {
  std::ofstream(AddShard("a"), std::ios::app) << "more\n";
  AddShard("b");
  master_.Reply([](v1::HelloResponse* hello) { hello->set_shards_ahead(2); });
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(shard->id(), "train/0/1");
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_TRUE(master_.returned[0].fatal);
  EXPECT_THAT(*master_.returned[0].failure, HasSubstr(dir_.File("a")));
}

TEST_F(SessionTest, ADrainFinishesTheLoopAndHandsBackTheRest) {
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  master_.WaitFor([&] { return master_.leases.size() == 2; });
  master_.Drain();
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    batch.Commit();
    master_.WaitFor([&] { return !master_.returned.empty(); });
  }
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(master_.returned.size(), 1u);
  ExpectRows(1);
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 100))->ended);
}

TEST_F(SessionTest, LeavingBeforeTheEndIsNoSuccess) {
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

TEST_F(SessionTest, TheDestructorHandsBackWhatIsHeld) {
  AddShard("a");
  {
    Session session = Connect();
    master_.WaitFor([&] { return master_.leases.size() == 1; });
  }
  master_.WaitFor([&] { return master_.returned.size() == 1; });
}

TEST_F(SessionTest, AConflictingTableFailsTheSessionAndShowsBoth) {
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

TEST_F(SessionTest, WrongSizesAndStrangeTablesAreErrorsOfTheProgram) {
  for (int what = 0; what < 4; ++what) {
    AddShard("a" + std::to_string(what));
    Session session = Connect();
    Table table = session.SparseTable({.name = "t", .dim = 2});
    DenseTensor tensor = session.DenseTable({.name = "w", .shape = {3}});
    std::optional<Shard> shard = session.NextShard();
    for (Minibatch& batch : shard->Minibatches()) {
      std::vector<uint64_t> keys = {1, 2};
      if (what == 0) batch.Push(table, keys, std::vector<float>(3));
      if (what == 1) batch.Push(tensor, std::vector<float>(4));
      if (what == 2) batch.Reject(kMinibatch, "no such record");
      if (what == 3) batch.Metric("", 1, 1);
    }
    EXPECT_EQ(session.status().code(), Status::Code::kInvalidArgument) << what;
  }
}

TEST_F(SessionTest, TwoThreadsShareASession) {
  for (int i = 0; i < 6; ++i) AddShard("f" + std::to_string(i));
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::thread other([&] { Train(session, table); });
  Train(session, table);
  other.join();
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(6);
}

TEST_F(SessionTest, ConnectSaysWhatIsWrong) {
  EXPECT_EQ(Session::Connect({}).status().code(), Status::Code::kInvalidArgument);
  master_.WaitFor([&] {
    master_.refuse_hello = "SDK 0.1 against master 0.2";
    return true;
  });
  Result<Session> refused =
      Session::Connect({.master_address = master_.address(), .worker_name = "worker-0"});
  EXPECT_EQ(refused.status().code(), Status::Code::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("0.2"));
  master_.Kill();
  Result<Session> nobody = Session::Connect(
      {.master_address = master_.address(), .worker_name = "worker-0", .connect_timeout_ms = 1});
  EXPECT_EQ(nobody.status().code(), Status::Code::kUnavailable);
  EXPECT_THAT(nobody.status().message(), HasSubstr(master_.address()));
}

}  // namespace
}  // namespace muster
