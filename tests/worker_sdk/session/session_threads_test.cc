#include "worker_sdk/session/session_impl.h"

#include <atomic>
#include <thread>

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

using SessionThreadsTest = SessionTest;

TEST_F(SessionThreadsTest, AMasterRestartIsSurvivedAndLeasesReasserted) {
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

TEST_F(SessionThreadsTest, AMasterOfAnotherJobIsLikeOneThatIsAway) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    batch.Commit();
  }
  master_.Kill();
  master_.EndWhenDone();
  master_.SetJob("id-2");
  master_.Restart();
  master_.WaitFor([&] { return master_.strangers >= 2; });
  std::thread registration(
      [&] { session.SparseTable({.name = "u", .dim = 2, .optimizer = Sum{}}); });
  master_.WaitFor([&, seen = master_.strangers] { return master_.strangers >= seen + 3; });
  EXPECT_TRUE(session.status().ok()) << session.status().message();
  master_.Kill();
  EXPECT_EQ(master_.reasserted, 0);
  EXPECT_EQ(master_.tables.size(), 1u);
  master_.SetJob("id-1");
  master_.Restart();
  registration.join();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(master_.tables.size(), 2u);
  ExpectRows(1);
}

TEST_F(SessionThreadsTest, ADrainFinishesTheLoopAndHandsBackTheRest) {
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
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->ended);
}

TEST_F(SessionThreadsTest, TheDestructorHandsBackWhatIsHeld) {
  AddShard("a");
  {
    Session session = Connect();
    master_.WaitFor([&] { return master_.leases.size() == 1; });
  }
  master_.WaitFor([&] { return master_.returned.size() == 1; });
}

TEST_F(SessionThreadsTest, TheFirstShardAfterARestartRunsAlone) {
  AddShard("a");
  AddShard("b");
  master_.Reply([](v1::HelloResponse* hello) { hello->set_shards_ahead(2); });
  Session session = std::move(Session::Connect({.master_address = master_.address(),
                                                .worker_name = "worker-0",
                                                .slot_file = dir_.File("slot"),
                                                .start = 2}))
                        .value();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> first = session.NextShard();
  ASSERT_TRUE(first.has_value());
  std::atomic<bool> alone = true;
  std::thread other([&] {
    std::optional<Shard> second = session.NextShard();
    EXPECT_TRUE(second.has_value());
    EXPECT_FALSE(alone) << "a crash now would be charged to no shard";
    for (Minibatch& batch : second->Minibatches()) PushOnes(table, batch);
  });
  master_.WaitFor([&] { return master_.leases.size() == 2; });
  int exchanges = 0;  // time for the other thread to do what it must not
  master_.WaitFor([&] { return ++exchanges > 5; });
  for (Minibatch& batch : first->Minibatches()) {
    PushOnes(table, batch);
    alone = batch.step() < kLines / kMinibatch - 1;
  }
  other.join();
  master_.EndWhenDone();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(2);
}

TEST_F(SessionThreadsTest, TwoThreadsShareASession) {
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

}  // namespace
}  // namespace muster
