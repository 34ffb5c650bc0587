// Calls of a minibatch that are errors of the program, or fail its shard.
#include <functional>
#include <limits>

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

/// What one call in a minibatch does to a session that has the tables "t" and "u" of two columns
/// and the tensor "w".
class MinibatchCallsTest : public SessionTest {
 protected:
  struct Tables {
    Table t, u;
    DenseTensor w;
  };
  using Call = std::function<void(Minibatch&, const Tables&)>;
  /// The session's status after the first minibatch of a shard, and what the master learnt.
  Status StatusAfter(const Call& call) {
    AddShard("a" + std::to_string(shards_++));
    master_.WaitFor([&] {
      master_.returned.clear();
      return true;
    });
    Session session = Connect();
    const Tables tables{session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}}),
                        session.SparseTable({.name = "u", .dim = 2, .optimizer = Sum{}}),
                        session.DenseTable({.name = "w", .shape = {3}, .optimizer = Sum{}})};
    std::optional<Shard> shard = session.NextShard();
    EXPECT_TRUE(shard.has_value()) << session.status().message();
    for (Minibatch& batch : shard->Minibatches()) {
      call(batch, tables);
      break;
    }
    shard.reset();
    Status status = session.status();
    session.Finish();
    return status;
  }
  std::string ErrorOf(const Call& call) {
    const Status status = StatusAfter(call);
    EXPECT_EQ(status.code(), Status::Code::kInvalidArgument) << status.message();
    return status.message();
  }
  /// Why the shard failed; the session goes on.
  std::string FailureOf(const Call& call) {
    const Status status = StatusAfter(call);
    EXPECT_TRUE(status.ok()) << status.message();
    // Besides it, the shard that was held ahead has come back.
    const auto failed = std::ranges::find(master_.returned, true, &ReturnedLease::failed);
    EXPECT_NE(failed, master_.returned.end());
    if (failed == master_.returned.end()) return "";
    EXPECT_FALSE(failed->fatal);
    return failed->reason;
  }
  int shards_ = 0;
};

TEST_F(MinibatchCallsTest, WhatIsPushedAfterCommitIsAnErrorOfTheProgram) {
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables& tables) {
                batch.Commit();
                batch.Push(tables.t, std::vector<uint64_t>{1}, std::vector<float>(2));
              }),
              HasSubstr("Push to table \"t\" after Commit"));
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables& tables) {
                batch.Commit();
                batch.Push(tables.w, std::vector<float>(3));
              }),
              HasSubstr("Push to table \"w\" after Commit"));
}

TEST_F(MinibatchCallsTest, ACommitCountsOnce) {
  EXPECT_TRUE(StatusAfter([](Minibatch& batch, const Tables& tables) {
                batch.Push(tables.t, std::vector<uint64_t>{1}, std::vector<float>{1, 2});
                batch.Commit();
                batch.Commit();
                batch.Commit();
              }).ok());
  EXPECT_LE(master_.times.minibatches_finished, 1u);
}

TEST_F(MinibatchCallsTest, HandlesOfAnotherKindOfTableAreErrorsOfTheProgram) {
  // Of another job, whose tables have other numbers.
  FakeMaster others(kPartitions);
  Session stranger =
      std::move(Session::Connect({.master_address = others.address(), .worker_name = "worker-0"}))
          .value();
  const DenseTensor not_dense = stranger.DenseTable({.name = "d", .shape = {3}});
  stranger.SparseTable({.name = "a", .dim = 2});
  const Table not_sparse = stranger.SparseTable({.name = "b", .dim = 2});
  const Table nothing = stranger.SparseTable({.name = "c", .dim = 2});
  const std::vector<uint64_t> keys = {1};
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) { batch.Need(not_dense); }),
              HasSubstr("Need of table \"t\": the table is sparse, the call is for a dense one"));
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) { batch.Need(not_sparse, keys); }),
              HasSubstr("the table is dense, the call is for a sparse one"));
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) {
                EXPECT_THAT(batch.Pull(not_dense).values(), ElementsAre(0, 0, 0));
              }),
              HasSubstr("Pull of table"));
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) {
                EXPECT_THAT(batch.Pull(not_sparse, keys).values(), ElementsAre(0, 0));
              }),
              HasSubstr("Pull of table"));
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) {
                batch.Push(not_dense, std::vector<float>(3));
              }),
              HasSubstr("Push of table"));
  EXPECT_THAT(ErrorOf([&](Minibatch& batch, const Tables&) {
                batch.Push(nothing, keys, std::vector<float>(2));
              }),
              HasSubstr("table 4 is not one of this session"));
}

TEST_F(MinibatchCallsTest, RecordsThatAreNoneOfTheMinibatchAreErrorsOfTheProgram) {
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables&) { batch.Reject(kMinibatch, "x"); }),
              HasSubstr("Reject of record 4 of a minibatch of 4"));
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables&) {
                EXPECT_FALSE(batch.topic());
                EXPECT_EQ(batch.topic_record(0).offset, 0u);
              }),
              HasSubstr("topic_record in dataset 'train', which is no topic"));
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables&) {
                EXPECT_EQ(batch.topic_headers(0).size(), 0u);
              }),
              HasSubstr("topic_headers in dataset"));
}

TEST_F(MinibatchCallsTest, MetricsThatAreNoNumbersFailTheShard) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [value, weight] : std::vector<std::pair<double, double>>{
           {nan, 1}, {inf, 1}, {-inf, 1}, {1, nan}, {1, inf}, {1, -0.5}}) {
    EXPECT_THAT(
        FailureOf([&](Minibatch& batch, const Tables&) { batch.Metric("loss", value, weight); }),
        HasSubstr("metric \"loss\" is"))
        << value << " with weight " << weight;
  }
}

TEST_F(MinibatchCallsTest, MetricsHaveTheLimitsOfTheMaster) {
  const auto with_names = [](size_t metrics, size_t aucs) {
    return [=](Minibatch& batch, const Tables&) {
      for (size_t i = 0; i < metrics; ++i) batch.Metric("m" + std::to_string(i), 1, 1);
      for (size_t i = 0; i < aucs; ++i) {
        batch.Auc("a" + std::to_string(i), std::vector<float>{0.5f}, std::array<bool, 1>{true});
      }
      // Those that are there go on.
      batch.Metric("m0", 1, 1);
    };
  };
  EXPECT_TRUE(StatusAfter(with_names(200, 56)).ok());
  EXPECT_THAT(ErrorOf(with_names(200, 57)), HasSubstr("up to 256 metrics"));
  EXPECT_TRUE(StatusAfter([](Minibatch& batch, const Tables&) {
                batch.Metric(std::string(256, 'm'), 1, 0);
              }).ok());
  EXPECT_THAT(
      ErrorOf([](Minibatch& batch, const Tables&) { batch.Metric(std::string(257, 'm'), 1, 1); }),
      HasSubstr("1 to 256 bytes"));
  EXPECT_THAT(ErrorOf([](Minibatch& batch, const Tables&) {
                batch.Auc("auc", std::vector<float>{0.5f}, std::vector<uint8_t>{1, 0});
              }),
              HasSubstr("1 scores and 2 labels"));
}

}  // namespace
}  // namespace muster
