#include "worker_sdk/session/minibatch_loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker_sdk/session/fake_loop_session.h"

namespace muster::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Log = std::vector<std::string>;

/// Takes rejected records, or returns `result`.
class FakeReader final : public sdk::ShardReader {
 public:
  explicit FakeReader(Log* log) : log_(log) {}
  absl::StatusOr<sdk::ShardRecords> Read(const ShardWork&, const sdk::KeepWaiting&) override {
    return absl::UnimplementedError("the loop does not read");
  }
  std::string NameOf(const ShardWork&) const override { return "file"; }
  std::string LocationOf(const ShardWork&, const sdk::ShardRecords&, size_t at) const override {
    return fmt::format("file:{}", at);
  }
  bool KeepsRejected(const ShardWork&) const override { return true; }
  absl::Status WriteRejected(const ShardWork&, const sdk::ShardRecords&,
                             std::span<const sdk::RejectedRecord> records,
                             const sdk::KeepWaiting&) override {
    log_->push_back(fmt::format("write {}", records.size()));
    return result;
  }
  absl::Status result;

 private:
  Log* const log_;
};

/// Writes down what the loop tells it.
class FakeOwner final : public LoopOwner {
 public:
  explicit FakeOwner(Log* log) : log_(log) {}
  bool may_use_tables() const override { return true; }
  void Skip(MinibatchIndex minibatch) override {
    log_->push_back(fmt::format("skip {}", minibatch.value()));
  }
  Next Start(MinibatchIndex minibatch) override {
    log_->push_back(fmt::format("start {}", minibatch.value()));
    return minibatch == stops_at ? stops : Next::kRun;
  }
  bool PushesNothing(const MinibatchImpl& minibatch) override {
    log_->push_back(fmt::format("commit {}", minibatch.index().value()));
    return false;
  }
  void Push(const MinibatchImpl&, std::shared_ptr<const sdk::RowBatch>) override {
    log_->push_back("push");
  }
  void End(MinibatchIndex minibatch, size_t records, const ShardMetrics& metrics) override {
    log_->push_back(fmt::format("end {}: {} of {}", minibatch.value(), records, metrics.records));
  }
  void Complete(ShardMetrics metrics) override {
    log_->push_back(fmt::format("complete: {}", metrics.records));
  }
  void FailRun(std::string reason) override { log_->push_back("failed: " + reason); }
  void HandBack(std::string reason) override { log_->push_back("handed back: " + reason); }

  std::optional<MinibatchIndex> stops_at;
  Next stops = Next::kEnd;

 private:
  Log* const log_;
};

class MinibatchLoopTest : public ::testing::Test {
 protected:
  /// A loop over minibatches of so many records.
  MinibatchLoop& Begin(const std::vector<size_t>& sizes, std::vector<MinibatchIndex> run = {}) {
    auto records = std::make_shared<sdk::ShardRecords>();
    records->minibatches = {0};
    for (const size_t size : sizes) {
      records->records.resize(records->records.size() + size, "record");
      records->minibatches.push_back(records->records.size());
    }
    LoopWork work{.reader = &reader, .records = std::move(records)};
    work.shard.grant.work.dataset_name = predicts_ ? "new" : "train";
    if (predicts_) {
      work.shard.grant.work.mode = DatasetMode::kPredict;
      work.shard.grant.work.output = "out";
    }
    work.shard.minibatches = std::move(run);
    return loop.emplace(&session, &owner, std::move(work));
  }
  /// The same of a predict dataset.
  void BeginPredict(const std::vector<size_t>& sizes) {
    predicts_ = true;
    Begin(sizes);
    predicts_ = false;
  }
  /// What has happened since the last call.
  Log Happened() { return std::exchange(log, {}); }
  /// The trainer runs the loop, and rejects a record of each minibatch.
  void RunAndReject() {
    for (bool more = loop->Begin(nullptr); more; more = loop->Advance()) {
      loop->current().Reject(0, "bad");
    }
    EXPECT_TRUE(loop->left());
    EXPECT_EQ(session.loops, 0);
  }

  Log log;
  FakeLoopSession<> session;
  FakeReader reader{&log};
  FakeOwner owner{&log};
  std::optional<MinibatchLoop> loop;

 private:
  bool predicts_ = false;
};

TEST_F(MinibatchLoopTest, TheOwnerHearsOfEachMinibatchAndOfTheEnd) {
  Begin({2, 1});
  ASSERT_TRUE(loop->Begin(nullptr));
  EXPECT_EQ(session.loops, 1);
  EXPECT_THAT(Happened(), ElementsAre("start 0"));
  loop->current().Commit();
  EXPECT_THAT(Happened(), ElementsAre("commit 0"));
  EXPECT_TRUE(loop->Advance());
  EXPECT_THAT(Happened(), ElementsAre("end 0: 2 of 2", "start 1"));
  EXPECT_FALSE(loop->left());
  EXPECT_FALSE(loop->Advance());
  EXPECT_THAT(Happened(), ElementsAre("commit 1", "end 1: 1 of 3", "complete: 3"));
  EXPECT_TRUE(loop->left());
  EXPECT_EQ(session.loops, 0);
  EXPECT_FALSE(loop->Begin(nullptr)) << "it runs once";
  EXPECT_THAT(Happened(), IsEmpty());
}

TEST_F(MinibatchLoopTest, MinibatchesWithoutRecordsAreSkippedBeforeTheFirstStart) {
  Begin({1, 0, 1, 0, 1}, {MinibatchIndex(2), MinibatchIndex(3)});
  RunAndReject();
  EXPECT_THAT(Happened(), ElementsAre("skip 3", "start 2", "commit 2", "end 2: 1 of 1", "write 1",
                                      "complete: 1"));
  Begin({0, 0});
  RunAndReject();
  EXPECT_THAT(Happened(), ElementsAre("skip 0", "skip 1", "complete: 0"));
}

TEST_F(MinibatchLoopTest, WhatHasRunStaysIfTheOwnerEndsTheLoop) {
  owner.stops_at = MinibatchIndex(1);
  Begin({2, 2, 2});
  RunAndReject();
  EXPECT_THAT(Happened(), ElementsAre("start 0", "commit 0", "end 0: 2 of 2", "start 1", "write 1",
                                      "complete: 2"));
}

TEST_F(MinibatchLoopTest, NothingStaysOfARunThatIsLost) {
  owner.stops_at = MinibatchIndex(1);
  owner.stops = LoopOwner::Next::kLost;
  Begin({2, 2, 2});
  RunAndReject();
  EXPECT_THAT(Happened(), ElementsAre("start 0", "commit 0", "end 0: 2 of 2", "start 1"));
}

TEST_F(MinibatchLoopTest, RejectedRecordsThatCannotBeWrittenEndTheRun) {
  reader.result = absl::UnavailableError("no broker");
  Begin({1});
  RunAndReject();
  EXPECT_EQ(Happened().back(),
            "handed back: shard train/0/0: rejected records could not be written to the "
            "dead-letter topic: no broker");
  reader.result = absl::InternalError("too large");
  Begin({1});
  RunAndReject();
  EXPECT_EQ(Happened().back(),
            "failed: shard train/0/0: rejected records could not be written to the dead-letter "
            "topic: too large");
}

TEST_F(MinibatchLoopTest, OutputsArePublishedBeforeTheShardIsComplete) {
  BeginPredict({2, 1});
  for (bool more = loop->Begin(nullptr); more; more = loop->Advance()) {
    EXPECT_TRUE(loop->current().evaluate());
    EXPECT_TRUE(loop->current().predict());
    loop->current().Output(std::to_string(loop->current().records().size()));
    EXPECT_THAT(session.outputs, IsEmpty());
  }
  EXPECT_THAT(session.outputs, ElementsAre("out/new-00000000.out: 21"));
  EXPECT_EQ(Happened().back(), "complete: 3");
  EXPECT_THAT(session.errors, IsEmpty());
}

TEST_F(MinibatchLoopTest, OutputsThatCannotBePublishedEndTheRun) {
  const std::pair<absl::Status, std::string> cases[] = {
      {absl::UnavailableError("no disk"),
       "handed back: shard new/0/0: its outputs could not be "
       "written: no disk"},
      {absl::AbortedError("lost"),
       "handed back: shard new/0/0: its outputs could not be written: "
       "lost"},
      {absl::FailedPreconditionError("not yours"),
       "failed: shard new/0/0: its outputs could not be written: not yours"}};
  for (const auto& [status, end] : cases) {
    session.output_result = status;
    BeginPredict({1});
    ASSERT_TRUE(loop->Begin(nullptr));
    loop->current().Output("x");
    EXPECT_FALSE(loop->Advance());
    EXPECT_EQ(Happened().back(), end);
    EXPECT_TRUE(loop->left());
  }
}

TEST_F(MinibatchLoopTest, AShardWithoutOutputsFailsUnlessAllOfItIsRejected) {
  BeginPredict({1, 1});
  for (bool more = loop->Begin(nullptr); more; more = loop->Advance()) continue;
  EXPECT_EQ(Happened().back(),
            "failed: shard new/0/0: it is of a predict dataset, and none of its minibatches has "
            "called Output");
  BeginPredict({1, 1});
  RunAndReject();
  EXPECT_EQ(Happened().back(), "complete: 2");
  EXPECT_THAT(session.outputs, IsEmpty());
}

TEST_F(MinibatchLoopTest, OutputsAreOfPredictDatasetsAndOfTheLoop) {
  Begin({1});
  ASSERT_TRUE(loop->Begin(nullptr));
  EXPECT_FALSE(loop->current().predict());
  loop->current().Output("x");
  session.hello.prefetch_minibatches = 1;
  BeginPredict({1, 1});
  ASSERT_TRUE(loop->Begin([](Minibatch& batch) { batch.Output("early"); }));
  loop->current().Output("x");
  loop->current().Commit();
  loop->current().Output("late");
  EXPECT_THAT(
      session.errors,
      ElementsAre("Output in dataset \"train\": only datasets of mode predict have outputs",
                  HasSubstr("in `prepare`"), HasSubstr("in `prepare`"), HasSubstr("after Commit")));
}

TEST_F(MinibatchLoopTest, WrongOutputsFailTheShard) {
  BeginPredict({1});
  ASSERT_TRUE(loop->Begin(nullptr));
  loop->current().Output(std::vector<float>(3), 2);
  EXPECT_EQ(Happened().back(), "failed: shard new/0/0: Output: 3 numbers are no rows of 2 columns");
}

TEST_F(MinibatchLoopTest, TheTrainerMayMakeTheObjectItself) {
  const auto join = [](std::span<const std::string_view> pieces) -> Result<std::string> {
    std::string object = std::to_string(pieces.size());
    for (const std::string_view piece : pieces) object += "|" + std::string(piece);
    return object;
  };
  BeginPredict({2, 1});
  for (bool more = loop->Begin(nullptr); more; more = loop->Advance()) {
    loop->current().Output(std::to_string(loop->current().records().size()), {".joined", join});
    loop->current().Output("", {".joined", join});
  }
  EXPECT_THAT(session.outputs, ElementsAre("out/new-00000000.joined: 4|2||1|"));
  EXPECT_EQ(Happened().back(), "complete: 3");
}

TEST_F(MinibatchLoopTest, AnObjectThatCannotBeMadeFailsTheShardUnlessItWasInterrupted) {
  const std::pair<Status::Code, std::string> cases[] = {
      {Status::Code::kInternal,
       "failed: shard new/0/0: its outputs could not be made an object: why"},
      {Status::Code::kInterrupted,
       "handed back: shard new/0/0: its outputs could not be made an object: why"}};
  for (const auto& [code, end] : cases) {
    BeginPredict({1});
    ASSERT_TRUE(loop->Begin(nullptr));
    loop->current().Output("x", {".joined", [code = code](auto) { return Status(code, "why"); }});
    EXPECT_FALSE(loop->Advance());
    EXPECT_EQ(Happened().back(), end);
    EXPECT_THAT(session.outputs, IsEmpty());
  }
}

TEST_F(MinibatchLoopTest, TheFirstFailureEndsTheLoop) {
  Begin({1, 1});
  ASSERT_TRUE(loop->Begin(nullptr));
  loop->Fail("first");
  loop->Fail("second");
  loop->current().Commit();
  EXPECT_FALSE(loop->Advance());
  EXPECT_THAT(Happened(), ElementsAre("start 0", "failed: shard train/0/0: first"));
  EXPECT_EQ(session.loops, 0);
}

TEST_F(MinibatchLoopTest, TheOwnerIsNotCalledIfTheTrainerLeavesTheLoopEarly) {
  Begin({1, 1});
  ASSERT_TRUE(loop->Begin(nullptr));
  EXPECT_THAT(Happened(), ElementsAre("start 0"));
  loop->Close();
  EXPECT_EQ(session.loops, 0);
  EXPECT_FALSE(loop->left());
  loop.reset();
  EXPECT_THAT(Happened(), IsEmpty());
}

TEST_F(MinibatchLoopTest, PrepareMayFailTheRun) {
  session.hello.prefetch_minibatches = 1;
  Begin({1, 1, 1});
  int prepared = 0;
  EXPECT_FALSE(loop->Begin([&](Minibatch&) {
    ++prepared;
    loop->Fail("no");
  }));
  EXPECT_EQ(prepared, 1);
  EXPECT_THAT(Happened(), ElementsAre("failed: shard train/0/0: no"));
}

}  // namespace
}  // namespace muster::internal
