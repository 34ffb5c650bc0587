#include "worker_sdk/session/minibatch_impl.h"

#include <any>
#include <limits>
#include <set>
#include <thread>

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::SizeIs;

using MinibatchImplTest = SessionTest;

TEST_F(MinibatchImplTest, PrepareRunsAheadAndPullsAreThere) {
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
      // Rows of earlier minibatches may be there or not; this minibatch's own rows are not.
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

TEST_F(MinibatchImplTest, RowsAndRecordsStayAsLongAsTheyAreOwned) {
  AddShard("a");
  AddShard("b");
  master_.EndWhenDone();
  std::vector<std::pair<Rows, std::vector<float>>> rows;
  std::vector<std::pair<std::shared_ptr<const void>, std::span<const std::string_view>>> records;
  const auto keep = [&](const Rows& pulled) {
    rows.emplace_back(pulled, std::vector<float>(pulled.values().begin(), pulled.values().end()));
  };
  {
    Session session = Connect();
    const Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
    const DenseTensor bias = session.DenseTable({.name = "b", .shape = {2}, .optimizer = Sum{}});
    const std::vector<uint64_t> repeated = {1, 1, 1, 1, 1, 1, 1, 2};
    while (std::optional<Shard> shard = session.NextShard()) {
      for (Minibatch& batch : shard->Minibatches()) {
        keep(batch.Pull(table, std::vector<uint64_t>{0, 1, 2, 3}));
        keep(batch.Pull(table, repeated));
        keep(batch.Pull(bias));
        batch.Push(table, repeated, std::vector<float>(2 * repeated.size(), 1));
        batch.Push(bias, std::vector<float>{1, 2});
        records.emplace_back(batch.records_owner(), batch.records());
      }
    }
    EXPECT_EQ(session.Finish(), 0);
  }
  EXPECT_THAT(rows.back().second, ::testing::Not(ElementsAre(0, 0))) << "the rows have changed";
  for (const auto& [kept, then] : rows) {
    EXPECT_THAT(kept.values(), ::testing::ElementsAreArray(then));
  }
  ASSERT_THAT(records, SizeIs(2 * kLines / kMinibatch));
  for (size_t i = 0; i < 2 * kLines; ++i) {
    EXPECT_EQ(records[i / kMinibatch].second[i % kMinibatch], std::to_string(i % kLines));
  }
}

TEST_F(MinibatchImplTest, DamagedRowsAreAskedForAgain) {
  AddShard("a");
  master_.EndWhenDone();
  int damaged = 0;  // on the server's thread, until the session has finished
  server_->damage = [&damaged](std::string* frame) {
    constexpr size_t kKindAt = 6;
    const bool rows = (*frame)[kKindAt] == static_cast<char>(wire::Kind::kPullReply);
    if (rows && damaged++ < 2) frame->back() ^= 0x40;
  };
  Session session = Connect();
  const Table table = session.SparseTable({.name = "t", .dim = 2});
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      const Rows rows = batch.Pull(table, std::vector<uint64_t>{1000, 1001, 1002});
      for (size_t i = 0; i < 3; ++i) EXPECT_THAT(rows[i], ElementsAre(0, 0));
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_GT(damaged, 2);
}

TEST_F(MinibatchImplTest, EvaluationReportsMetricsAndRefusesPush) {
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

TEST_F(MinibatchImplTest, LabelsAreBoolsOrBytes) {
  AddShard("a", DatasetMode::kEvaluate);
  master_.EndWhenDone();
  Session session = Connect();
  const std::vector<float> scores = {0.9f, 0.1f, 0.4f, 0.6f};
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      batch.Auc("bools", scores, std::array<bool, 4>{true, false, true, false});
      batch.Auc("bytes", scores, std::vector<uint8_t>{1, 0, 255, 0});
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  const std::map<std::string, ScoreHistogram>& aucs = master_.done[0].metrics.aucs;
  EXPECT_DOUBLE_EQ(muster::Auc(aucs.at("bools")), 0.75);
  EXPECT_DOUBLE_EQ(muster::Auc(aucs.at("bytes")), 0.75);
}

TEST_F(MinibatchImplTest, ATensorThatNobodyChangesIsReceivedOnce) {
  AddShard("a", DatasetMode::kEvaluate);
  AddShard("b", DatasetMode::kEvaluate);
  master_.EndWhenDone();
  Session session = Connect();
  DenseTensor bias = session.DenseTable({.name = "b", .shape = {2}});
  std::set<const float*> seen;
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      const Rows rows = batch.Pull(bias);
      EXPECT_EQ(rows.dim(), 2u);
      EXPECT_THAT(rows[0], ElementsAre(0, 0));
      EXPECT_EQ(batch.Pull(bias).data(), rows.data());
      seen.insert(rows.data());
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_THAT(seen, SizeIs(1));
  EXPECT_EQ(server_->rows_sent(), 1);
}

TEST_F(MinibatchImplTest, RowsOfATensorStayAsTheyWereWhileItsMinibatchIsNotLeft) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  DenseTensor bias = session.DenseTable({.name = "b", .shape = {2}, .optimizer = Sum{}});
  float last = 0;
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches([&](Minibatch& next) { next.Need(bias); })) {
      const Rows rows = batch.Pull(bias);
      const float before = rows[0][0];
      EXPECT_GE(before, last) << "what is pulled later is no older";
      last = before;
      batch.Push(bias, std::vector<float>{1, 2});
      batch.Commit();
      const int applied = static_cast<int>(batch.step()) + 1;
      while (server_->parts_applied() < applied) std::this_thread::yield();
      EXPECT_EQ(batch.Pull(bias).data(), rows.data());
      EXPECT_THAT(rows[0], ElementsAre(before, 2 * before));
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_THAT(server_->Row(1, 0), ElementsAre(6, 12));
}

TEST_F(MinibatchImplTest, PushInEvaluationIsAnErrorOfTheProgram) {
  AddShard("a", DatasetMode::kEvaluate);
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2});
  std::optional<Shard> shard = session.NextShard();
  for (Minibatch& batch : shard->Minibatches()) PushOnes(table, batch);
  EXPECT_THAT(session.status().message(), HasSubstr("evaluate dataset \"test\""));
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(MinibatchImplTest, NotANumberIsRefusedBeforeAnyPartLeaves) {
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
  EXPECT_THAT(master_.returned[0].reason, HasSubstr("\"embedding\" is nan (key 6, column 1"));
  EXPECT_FALSE(master_.returned[0].fatal);
  EXPECT_EQ(server_->parts_applied(), 0);
}

TEST_F(MinibatchImplTest, WhateverOfAPullIsPushedArrives) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  DenseTensor bias = session.DenseTable({.name = "b", .shape = {3}, .optimizer = Sum{}});
  const std::vector<uint64_t> keys = {7, 8, 7}, others = {8, 9};
  const std::vector<float> ones(6, 1.0f);
  auto prepare = [&](Minibatch& batch) {
    batch.Need(table, keys);
    batch.Need(bias);
  };
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches(prepare)) {
      const uint64_t step = batch.step();
      // All of it; a part of it; the same keys twice; others besides, before and after.
      if (step == 1) batch.Push(table, others, std::vector<float>(4, 10.0f));
      if (step != 4) batch.Push(table, keys, ones);
      if (step == 2) batch.Push(table, keys, ones);
      if (step == 3) batch.Push(table, others, std::vector<float>(4, 10.0f));
      if (step == 0 || step == 4) batch.Push(bias, std::vector<float>{1, 2, 3});
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  // Of six minibatches five push `keys`, one of them twice; two push `others`.
  EXPECT_THAT(server_->Row(1, 7), ElementsAre(12, 12));
  EXPECT_THAT(server_->Row(1, 8), ElementsAre(26, 26));
  EXPECT_THAT(server_->Row(1, 9), ElementsAre(20, 20));
}

TEST_F(MinibatchImplTest, NotANumberInWhatWasPulledIsNamedByItsKey) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "embedding", .dim = 2});
  DenseTensor bias = session.DenseTable({.name = "bias", .shape = {3}});
  std::optional<Shard> shard = session.NextShard();
  const std::vector<uint64_t> keys = {5, 6, 5};
  auto prepare = [&](Minibatch& batch) {
    batch.Need(bias);
    batch.Need(table, keys);
  };
  for (Minibatch& batch : shard->Minibatches(prepare)) {
    std::vector<float> gradients(6, 1.0f);
    gradients[3] = std::numeric_limits<float>::infinity();
    batch.Push(bias, std::vector<float>{1, 2, 3});
    batch.Push(table, keys, gradients);
  }
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_THAT(master_.returned[0].reason, HasSubstr("\"embedding\" is inf (key 6, column 1"));
  EXPECT_EQ(server_->parts_applied(), 0);
}

TEST_F(MinibatchImplTest, WhatTheWireCannotCarryIsRefusedBeforeAnyPartLeaves) {
  for (const std::string encoding : {"float16", "bfloat16"}) {
    AddShard(encoding);
    master_.Reply([&](v1::HelloResponse* response) { response->set_wire_encoding(encoding); });
    Session session = Connect();
    Table table = session.SparseTable({.name = "embedding", .dim = 2});
    std::optional<Shard> shard = session.NextShard();
    for (Minibatch& batch : shard->Minibatches()) {
      std::vector<float> gradients(4, 1.0f);
      gradients[3] = encoding == "float16" ? -1e5f : std::numeric_limits<float>::max();
      batch.Push(table, std::vector<uint64_t>{5, 6}, gradients);
      batch.Commit();
    }
    const size_t failures = encoding == "float16" ? 1 : 2;
    master_.WaitFor([&] { return master_.returned.size() >= failures; });
    const std::string& why = master_.returned[failures - 1].reason;
    EXPECT_THAT(why, HasSubstr("\"embedding\" is"));
    EXPECT_THAT(why, HasSubstr("(key 6, column 1"));
    EXPECT_THAT(why, HasSubstr(encoding + ", the job's spec.training.wireEncoding, ends at"));
    EXPECT_EQ(server_->parts_applied(), 0);
  }
}

TEST_F(MinibatchImplTest, AScoreThatIsNoneFailsTheShard) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(), -0.001f, 1.001f};
  for (size_t i = 0; i < std::size(bad); ++i) AddShard("a" + std::to_string(i));
  Session session = Connect();
  for (size_t i = 0; i < std::size(bad); ++i) {
    std::optional<Shard> shard = session.NextShard();
    for (Minibatch& batch : shard->Minibatches()) {
      const std::array<bool, 3> labels = {true, false, true};
      batch.Auc("auc", std::vector<float>{0, 1, bad[i]}, labels);
    }
    master_.WaitFor([&] { return master_.returned.size() == i + 1; });
    ASSERT_TRUE(master_.returned[i].failed) << bad[i];
    EXPECT_THAT(master_.returned[i].reason,
                AllOf(HasSubstr("metric \"auc\": score 2 of minibatch 0 of the shard is"),
                      HasSubstr("[0, 1]")));
    EXPECT_FALSE(master_.returned[i].fatal);
  }
  EXPECT_TRUE(session.status().ok()) << session.status().message();
}

TEST_F(MinibatchImplTest, OneNameIsOfOneKindOfMetric) {
  for (const bool auc_first : {false, true}) {
    AddShard(auc_first ? "a" : "b");
    Session session = Connect();
    std::optional<Shard> shard = session.NextShard();
    for (Minibatch& batch : shard->Minibatches()) {
      const std::array<bool, 1> labels = {true};
      if (!auc_first) batch.Metric("quality", 1, 1);
      batch.Auc("quality", std::vector<float>{0.5f}, labels);
      if (auc_first) batch.Metric("quality", 1, 1);
    }
    EXPECT_EQ(session.status().code(), Status::Code::kInvalidArgument);
    EXPECT_THAT(session.status().message(),
                AllOf(HasSubstr("\"quality\""), HasSubstr("Metric and Auc")));
  }
}

TEST_F(MinibatchImplTest, PrepareMayRejectAndReport) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  const auto prepare = [](Minibatch& batch) {
    batch.Reject(0, "bad");
    batch.Metric("length", 2, kMinibatch);
    batch.Commit();  // does nothing here
  };
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches(prepare)) PushOnes(table, batch);
  }
  EXPECT_EQ(session.Finish(), 0);
  const ShardMetrics& metrics = master_.done[0].metrics;
  EXPECT_EQ(metrics.rejected_records, kLines / kMinibatch);
  EXPECT_EQ(metrics.means.at("length"), (WeightedMean{kLines * 2, kLines}));
  ExpectRows(1);
}

TEST_F(MinibatchImplTest, PushInPrepareIsAnErrorOfTheProgram) {
  AddShard("a");
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2});
  std::optional<Shard> shard = session.NextShard();
  for (Minibatch& batch : shard->Minibatches([&](Minibatch& next) { PushOnes(table, next); })) {
    ADD_FAILURE() << batch.step();
  }
  EXPECT_THAT(session.status().message(), HasSubstr("in `prepare`"));
}

TEST_F(MinibatchImplTest, NoKeysHaveNoRowsAndNoGradients) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  const std::vector<uint64_t> none;
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches([&](Minibatch& next) { next.Need(table, none); })) {
      const Rows rows = batch.Pull(table, none);
      EXPECT_EQ(rows.num_keys(), 0u);
      EXPECT_EQ(rows.dim(), 2u);
      EXPECT_THAT(rows.values(), SizeIs(0));
      batch.Push(table, none, std::vector<float>());
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(server_->rows(), 0u);
  EXPECT_EQ(master_.done.size(), 1u);
}

TEST_F(MinibatchImplTest, WrongSizesAndStrangeTablesAreErrorsOfTheProgram) {
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

TEST_F(MinibatchImplTest, MetricsAreMeansByWeightAndOnlyTheFirstRejectedAreNamed) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      batch.Metric("loss", 3, 0.5);
      for (size_t i = 0; i < kMinibatch; ++i) {
        batch.Reject(i, batch.step() == 0 && i == 0 ? std::string(2'000, 'x') : "odd");
      }
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  const ShardMetrics& metrics = master_.done[0].metrics;
  EXPECT_EQ(metrics.means.at("loss"), (WeightedMean{6 * 1.5, 3}));
  EXPECT_EQ(metrics.rejected_records, kLines);
  ASSERT_THAT(metrics.reject_samples, SizeIs(10));
  EXPECT_EQ(metrics.reject_samples[0].size(), 1000u);
  EXPECT_EQ(metrics.reject_samples[9], dir_.File("a") + ":10: odd");
}

TEST_F(MinibatchImplTest, TheSameKeysOfTwoTablesAreTwoThings) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table t = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  Table u = session.SparseTable({.name = "u", .dim = 2, .optimizer = Sum{}});
  const std::vector<uint64_t> keys = {3, 4};
  const auto prepare = [&](Minibatch& batch) {
    batch.Need(t, keys);
    batch.Need(u, keys);
    batch.Need(t, keys);
    batch.Need(t, std::vector<uint64_t>{4});
  };
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches(prepare)) {
      const Rows of_t = batch.Pull(t, keys), of_u = batch.Pull(u, keys);
      EXPECT_EQ(of_t.num_keys(), 2u);
      EXPECT_NE(of_t.data(), of_u.data());
      EXPECT_EQ(batch.Pull(t, std::vector<uint64_t>{4}).num_keys(), 1u);
      batch.Push(t, keys, std::vector<float>{1, 2, 3, 4});
      batch.Push(u, keys, std::vector<float>{10, 20, 30, 40});
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_THAT(server_->Row(1, 4), ElementsAre(18, 24));
  EXPECT_THAT(server_->Row(2, 4), ElementsAre(180, 240));
}

}  // namespace
}  // namespace muster
