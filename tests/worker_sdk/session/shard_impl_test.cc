#include "worker_sdk/session/shard_impl.h"

#include <numeric>
#include <thread>
#include <tuple>

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

using ShardImplTest = SessionTest;

TEST_F(ShardImplTest, ARestoreBringsTheShardBackAndTheRowsAreWholeAgain) {
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
  EXPECT_EQ(master_.done[0].run, 1u);
  EXPECT_EQ(master_.done[0].metrics.means["loss"].weight, kLines / kMinibatch);
  ExpectRows(1);
}

TEST_F(ShardImplTest, ALostLeaseEndsTheLoopAndTheShardComesAgain) {
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

TEST_F(ShardImplTest, RowsThatHaveNotArrivedWhenTheLeaseIsLostAreZero) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  bool expired = false;
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      PushOnes(table, batch);
      batch.Commit();
      if (expired || batch.step() < 2) continue;
      const std::vector<uint64_t> first = {1, 2, 3};
      while (server_->rows() < 3 * kMinibatch) std::this_thread::yield();
      const Rows before = batch.Pull(table, first);
      EXPECT_THAT(before.values(), ElementsAre(1, 1, 1, 2, 1, 3));
      server_->Kill();
      master_.ExpireLeases();
      expired = true;
      EXPECT_THAT(batch.Pull(table, std::vector<uint64_t>{2, 3}).values(), ElementsAre(0, 0, 0, 0));
      EXPECT_THAT(before.values(), ElementsAre(1, 1, 1, 2, 1, 3));
      NewServer(2);
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(1);
}

TEST_F(ShardImplTest, FailedAndAbandonedShardsGoBack) {
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  session.NextShard()->Fail("cannot");
  {
    std::optional<Shard> left = session.NextShard();
  }
  master_.WaitFor([&] { return master_.returned.size() >= 2; });
  EXPECT_EQ(master_.returned[0].reason, "shard train/0/0: cannot");
  EXPECT_EQ(master_.returned[1].failed, false);
  EXPECT_EQ(master_.returned[1].hand_back, HandBack::kByTrainer);
}

TEST_F(ShardImplTest, TheFirstFailureOfAShardIsTheOneThatIsTold) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    ++minibatches;
    PushOnes(table, batch);
    shard->Fail("first");
    shard->Fail("second");
    batch.Commit();
  }
  EXPECT_EQ(minibatches, 1);
  EXPECT_TRUE(shard->Minibatches().begin() == shard->Minibatches().end());
  shard.reset();
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_EQ(session.Finish(), 1);
  ASSERT_EQ(master_.returned.size(), 1u);
  EXPECT_EQ(master_.returned[0].reason, "shard train/0/0: first");
  EXPECT_EQ(server_->parts_applied(), 0) << "nothing of a failed minibatch is sent";
  EXPECT_TRUE(master_.done.empty());
}

TEST_F(ShardImplTest, AShardThatPrepareFailsRunsNoMinibatch) {
  AddShard("a");
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int prepared = 0;
  for (Minibatch& batch : shard->Minibatches([&](Minibatch&) {
         ++prepared;
         shard->Fail("no");
       })) {
    ADD_FAILURE() << batch.step();
  }
  EXPECT_EQ(prepared, 1) << "a failed shard prepares no more";
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_EQ(master_.returned[0].reason, "shard train/0/0: no");
}

TEST_F(ShardImplTest, ALoopRunsOnce) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  for (Minibatch& batch : shard->Minibatches()) {
    EXPECT_TRUE(shard->Minibatches().begin() == shard->Minibatches().end());
    PushOnes(table, batch);
  }
  for (Minibatch& batch : shard->Minibatches()) ADD_FAILURE() << batch.step();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(1);
}

TEST_F(ShardImplTest, AChangedSourceIsFatal) {
  std::ofstream(AddShard("a"), std::ios::app) << "more\n";
  AddShard("b");
  master_.Reply([](v1::HelloResponse* hello) { hello->set_shards_ahead(2); });
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(shard->id(), "train/0/1");
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_TRUE(master_.returned[0].fatal);
  EXPECT_THAT(master_.returned[0].reason, HasSubstr(dir_.File("a")));
}

TEST_F(ShardImplTest, OfLargeRowsThoseOfOneMinibatchAreAskedForAhead) {
  server_->refuse = [](uint32_t) { return wire::PartCode::kRetry; };
  AddShard("a");
  AddShard("b");
  Session session = Connect();
  std::vector<uint64_t> keys(300);
  std::iota(keys.begin(), keys.end(), 0);
  for (const auto& [name, dim, ahead] :
       {std::tuple("small", 2u, 2), std::tuple("large", 65'536u, 1)}) {
    Table table = session.SparseTable({.name = name, .dim = dim});
    std::optional<Shard> shard = session.NextShard();
    ASSERT_TRUE(shard.has_value()) << session.status().message();
    int prepared = 0;
    const auto prepare = [&](Minibatch& next) {
      next.Need(table, keys);
      ++prepared;
    };
    for ([[maybe_unused]] Minibatch& batch : shard->Minibatches(prepare)) break;
    EXPECT_EQ(prepared, 1 + ahead) << name;
  }
}

}  // namespace
}  // namespace muster
