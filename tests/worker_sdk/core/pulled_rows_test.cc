// Pulls of dense tensors: what a worker asks by version, and what an answer may be taken for.
#include <algorithm>
#include <numeric>

#include "tests/worker_sdk/core/part_sender_fixture.h"

namespace muster::sdk {
namespace part_sender_test {

constexpr TableId kSparse{1}, kDense{2};
constexpr uint64_t kBlocks = 64;  // every partition has some

/// The states of partitions, and their answers. A partition's rows are all the same number.
class PulledRowsTest : public PartSenderTest {
 protected:
  struct State {
    uint64_t version = 1;
    float value = 0;
  };

  PulledRowsTest() {
    for (uint32_t p = 0; p < kPartitions; ++p) server_[p].value = static_cast<float>(p);
    GiveMap(MapOf(1, 0));
  }

  /// A pull of the whole tensor, and of some sparse rows besides.
  std::shared_ptr<const RowBatch> Batch(bool with_sparse) {
    blocks_.resize(kBlocks);
    std::iota(blocks_.begin(), blocks_.end(), uint64_t{0});
    std::vector<TableKeys> tables;
    if (with_sparse) tables.push_back({kSparse, 3, sparse_keys_});
    tables.push_back({kDense, 2, blocks_, /*dense=*/true});
    std::vector<PartitionId> order;
    for (uint32_t p = 0; p < kPartitions; ++p) order.push_back(PartitionId(p));
    // The first of the sparse keys appears twice.
    std::vector<uint64_t> given = {sparse_keys_[0], sparse_keys_[0]};
    given.insert(given.end(), sparse_keys_.begin() + 1, sparse_keys_.end());
    const auto sparse = std::make_shared<const KeySet>(MakeKeySet(given));
    return MakePull(tables, std::vector<std::shared_ptr<const KeySet>>{sparse, nullptr}, order);
  }
  DeliveryId Add(bool with_sparse = false) { return sender_.AddPull(Batch(with_sparse), now_); }

  struct AnswerTo {
    std::vector<wire::PartReply> parts;
    PooledVector<uint64_t> versions;
    std::vector<float> values;
  };
  /// A server's answer to a request with its owner epochs.
  AnswerTo AnswerOf(const SendRequest& request) {
    AnswerTo answer;
    size_t asked = 0;
    const RowPlan& plan = request.batch->plan;
    for (const SendRequest::Item& item : request.items) {
      const PlanPart& part = plan.parts[item.part];
      const State& state = server_[part.partition.value()];
      answer.parts.push_back({part.partition.value(), PartCode::kOk, false});
      for (uint32_t g = 0; g < part.group_count; ++g) {
        const PlanGroup& group = plan.groups[part.group_begin + g];
        if (group.dense) {
          answer.versions.push_back(state.version);
          if (request.versions[asked++] == state.version) continue;
        }
        answer.values.insert(answer.values.end(), group.floats(),
                             group.dense ? state.value : 100 + state.value);
      }
    }
    return answer;
  }
  PartSender::Outcome Give(const SendRequest& request, const AnswerTo& answer) {
    std::vector<float> ring = answer.values;  // written again once it was given
    ReceivedRows rows;
    rows.values = ring.data();
    rows.versions = answer.versions;
    const PartSender::Outcome outcome = sender_.OnReply(request.id, answer.parts, rows, now_);
    std::ranges::fill(ring, -1.0f);
    return outcome;
  }
  void Serve(const SendRequest& request) { Give(request, AnswerOf(request)); }
  std::shared_ptr<const Tensor> Finish(DeliveryId id) {
    EXPECT_TRUE(sender_.Finished(id));
    return sender_.TakePull(id).tensors.back();
  }
  std::shared_ptr<const Tensor> PullAll() {
    const DeliveryId id = Add();
    for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
    return Finish(id);
  }
  void ExpectRows(const Tensor& tensor) {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const uint32_t partition = PartitionOf(kDense, block, kPartitions).value();
      EXPECT_EQ(tensor.values[2 * block], server_[partition].value) << block;
      EXPECT_EQ(tensor.values[2 * block + 1], server_[partition].value) << block;
    }
  }
  void Change(uint32_t partition, float value) {
    ++server_[partition].version;
    server_[partition].value = value;
  }

  std::map<uint32_t, State> server_;
  std::vector<uint64_t> blocks_;
  const std::vector<uint64_t> sparse_keys_ = {1, 2, 3, 4, 5, 6, 7, 8, 9};
};

using ::testing::Each;

TEST_F(PulledRowsTest, WhatNobodyChangedIsTheSameMemory) {
  Add();
  EXPECT_THAT(sender_.Flush(now_)[0].versions, Each(wire::kNoVersion));
  const std::shared_ptr<const Tensor> first = PullAll();
  ExpectRows(*first);
  EXPECT_EQ(PullAll(), first);
  EXPECT_EQ(PullAll(), first);
}

TEST_F(PulledRowsTest, OnlyWhatWasChangedComesAgain) {
  const std::shared_ptr<const Tensor> first = PullAll();
  const std::vector<float> before(first->values.get(), first->values.get() + 2 * kBlocks);
  Change(3, 33);
  const DeliveryId id = Add();
  size_t floats = 0;
  for (const SendRequest& request : sender_.Flush(now_)) {
    floats += AnswerOf(request).values.size();
    Serve(request);
  }
  EXPECT_GT(floats, 0u);
  EXPECT_LT(floats, 2 * kBlocks / 2);
  const std::shared_ptr<const Tensor> second = Finish(id);
  ExpectRows(*second);
  EXPECT_EQ(std::vector<float>(first->values.get(), first->values.get() + 2 * kBlocks), before);
}

TEST_F(PulledRowsTest, RowsOfAnotherOwnerEpochAreNotHeld) {
  PullAll();
  PartitionMap map = RestoredMap(2, {3});
  GiveMap(map);
  // The restored partition has counted as far as the one before it.
  server_[3].value = 33;
  const std::shared_ptr<const Tensor> second = PullAll();
  ExpectRows(*second);
}

TEST_F(PulledRowsTest, ALateAnswerOfAFormerOwnerChangesNothing) {
  const std::shared_ptr<const Tensor> first = PullAll();
  const DeliveryId id = Add();
  const SendRequests former = sender_.Flush(now_);
  std::vector<AnswerTo> late;
  Change(3, -7);  // what the former owner says, and no other will
  for (const SendRequest& request : former) late.push_back(AnswerOf(request));
  GiveMap(RestoredMap(2, {0, 1, 2, 3, 4, 5, 6, 7}));
  server_[3] = {.version = 1, .value = 33};
  const SendRequests now = sender_.Flush(now_);
  Give(former[0], late[0]);
  Give(former[1], late[1]);
  EXPECT_FALSE(sender_.Finished(id));
  for (const SendRequest& request : now) Serve(request);
  const std::shared_ptr<const Tensor> second = Finish(id);
  ExpectRows(*second);
  Give(former[0], late[0]);
  Give(former[1], late[1]);
  ExpectRows(*second);
  EXPECT_NE(second, first);
}

TEST_F(PulledRowsTest, ALateUnchangedOfAFormerOwnerIsNotTakenForTheRows) {
  PullAll();
  const DeliveryId id = Add();
  const SendRequests former = sender_.Flush(now_);
  std::vector<AnswerTo> late;
  for (const SendRequest& request : former) late.push_back(AnswerOf(request));
  GiveMap(RestoredMap(2, {0, 1, 2, 3, 4, 5, 6, 7}));
  for (uint32_t p = 0; p < kPartitions; ++p) server_[p].value = 50 + static_cast<float>(p);
  const SendRequests now = sender_.Flush(now_);
  for (size_t i = 0; i < former.size(); ++i) EXPECT_THAT(late[i].values, IsEmpty());
  for (size_t i = 0; i < former.size(); ++i) Give(former[i], late[i]);
  EXPECT_FALSE(sender_.Finished(id));
  for (const SendRequest& request : now) Serve(request);
  ExpectRows(*Finish(id));
}

TEST_F(PulledRowsTest, APullThatIsGivenUpLeavesNothingBehind) {
  const std::shared_ptr<const Tensor> first = PullAll();
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 60);
  const DeliveryId given_up = Add();
  SendRequests requests = sender_.Flush(now_);
  Serve(requests[0]);
  sender_.Cancel(given_up);
  Serve(requests[1]);
  const DeliveryId id = Add();
  requests = sender_.Flush(now_);
  size_t floats = 0;
  for (const SendRequest& request : requests) {
    floats += AnswerOf(request).values.size();
    Serve(request);
  }
  EXPECT_EQ(floats, 2 * kBlocks) << "what came for the other pull is not held";
  ExpectRows(*Finish(id));
}

TEST_F(PulledRowsTest, WhatIsRefusedOrUnansweredIsAskedAnewAndTheRestStays) {
  PullAll();
  Change(0, 10);
  Change(1, 11);
  const DeliveryId id = Add();
  SendRequests requests = sender_.Flush(now_);
  AnswerTo refused = AnswerOf(requests[0]);
  ASSERT_EQ(refused.parts[0].partition, 0u);
  const PlanPart& first = requests[0].batch->plan.parts[requests[0].items[0].part];
  const auto rows = static_cast<std::ptrdiff_t>(first.value_count);
  refused.parts[0].code = PartCode::kRetry;
  refused.versions[0] = wire::kNoVersion;
  refused.values.erase(refused.values.begin(), refused.values.begin() + rows);
  Give(requests[0], refused);
  sender_.OnUnanswered(requests[1].id, now_);
  Change(1, 12);
  for (int round = 0; round < 5 && !sender_.Finished(id); ++round) {
    now_ += milliseconds(500);
    for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  }
  ExpectRows(*Finish(id));
}

TEST_F(PulledRowsTest, AnUnchangedThatSpeaksOfWhatWasGivenUpIsAskedAnew) {
  PullAll();
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 70);
  const DeliveryId second = Add(), third = Add();
  SendRequests requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(4));
  std::vector<AnswerTo> unchanged;
  for (size_t i = 2; i < 4; ++i) {
    AnswerTo answer = AnswerOf(requests[i]);
    answer.versions = requests[i].versions;  // it was read before the change
    answer.values.clear();
    unchanged.push_back(answer);
  }
  Serve(requests[0]);
  Serve(requests[1]);
  ExpectRows(*Finish(second));  // the pull that is still in progress goes by these rows now
  Give(requests[2], unchanged[0]);
  Give(requests[3], unchanged[1]);
  EXPECT_FALSE(sender_.Finished(third));
  now_ += milliseconds(500);
  for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  ExpectRows(*Finish(third));
}

TEST_F(PulledRowsTest, ATensorIsFreedWhenANewerOneHasCome) {
  std::weak_ptr<const Tensor> first = PullAll();
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 80);
  const DeliveryId second = Add(), third = Add();
  const SendRequests requests = sender_.Flush(now_);
  Serve(requests[0]);
  Serve(requests[1]);
  EXPECT_TRUE(first.expired()) << "a pull in progress holds on to it";
  Finish(second);
  Serve(requests[2]);
  Serve(requests[3]);
  ExpectRows(*Finish(third));
}

TEST_F(PulledRowsTest, AnOlderPullThatEndsLaterIsNotTheNewest) {
  const DeliveryId first = Add(), second = Add();
  const SendRequests requests = sender_.Flush(now_);
  std::vector<AnswerTo> old;
  for (size_t i = 0; i < 2; ++i) old.push_back(AnswerOf(requests[i]));
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 90);
  Serve(requests[2]);
  Serve(requests[3]);
  const std::shared_ptr<const Tensor> newest = Finish(second);
  Give(requests[0], old[0]);
  Give(requests[1], old[1]);
  EXPECT_NE(Finish(first), newest);
  EXPECT_EQ(PullAll(), newest);
}

TEST_F(PulledRowsTest, SparseRowsBesideATensorAreWhereTheirKeysAppearFirst) {
  for (int round = 0; round < 3; ++round) {
    if (round == 2) Change(3, 33);  // of the others nothing but sparse rows comes
    const std::shared_ptr<const RowBatch> batch = Batch(/*with_sparse=*/true);
    const RowOutput& output = batch->outputs[0];
    EXPECT_TRUE(output.spread);
    std::fill_n(output.rows.get(), 3 * output.keys->original.size(), -1.0f);
    const DeliveryId id = sender_.AddPull(batch, now_);
    for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
    ASSERT_TRUE(sender_.Finished(id));
    const PullRows rows = sender_.TakePull(id);
    EXPECT_EQ(rows.tensors[0], nullptr);
    ExpectRows(*rows.tensors[1]);
    RowOutput taken = output;
    const std::shared_ptr<float[]> all = TakeOutput(&taken, 3);
    EXPECT_EQ(output.spread, all == output.rows);
    const auto row_at = [&](size_t i) { return std::vector<float>(&all[3 * i], &all[3 * i] + 3); };
    EXPECT_EQ(row_at(1), row_at(0));
    for (size_t i = 0; i < sparse_keys_.size(); ++i) {
      const PartitionId partition = PartitionOf(kSparse, sparse_keys_[i], kPartitions);
      const float expected = 100 + server_[partition.value()].value;
      EXPECT_THAT(row_at(i == 0 ? 0 : i + 1), Each(expected));
    }
  }
}

TEST_F(PulledRowsTest, WhereManyKeysRepeatTheirRowsAreReceivedOnceAndExpanded) {
  std::vector<uint64_t> given;
  for (int round = 0; round < 3; ++round) {
    given.insert(given.end(), sparse_keys_.rbegin(), sparse_keys_.rend());
  }
  const auto keys = std::make_shared<const KeySet>(MakeKeySet(given));
  const TableKeys table{kSparse, 3, keys->unique};
  std::vector<PartitionId> order;
  for (uint32_t p = 0; p < kPartitions; ++p) order.push_back(PartitionId(p));
  const std::shared_ptr<RowBatch> batch =
      MakePull(std::span(&table, 1), std::span(&keys, 1), order);
  ASSERT_FALSE(batch->outputs[0].spread);
  const DeliveryId id = sender_.AddPull(batch, now_);
  for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  ASSERT_TRUE(sender_.Finished(id));
  const std::shared_ptr<float[]> rows = TakeOutput(&batch->outputs[0], 3);
  EXPECT_EQ(batch->outputs[0].rows, nullptr) << "not kept for anyone";
  for (size_t i = 0; i < given.size(); ++i) {
    const uint32_t partition = PartitionOf(kSparse, given[i], kPartitions).value();
    EXPECT_THAT(std::vector<float>(&rows[3 * i], &rows[3 * i] + 3),
                Each(100 + server_[partition].value));
  }
}

TEST_F(PulledRowsTest, SparseRowsOfALateAnswerAreNotTaken) {
  const std::shared_ptr<const RowBatch> batch = Batch(/*with_sparse=*/true);
  const DeliveryId id = sender_.AddPull(batch, now_);
  const SendRequests former = sender_.Flush(now_);
  std::vector<AnswerTo> late;
  for (const SendRequest& request : former) {
    late.push_back(AnswerOf(request));
    std::ranges::fill(late.back().values, -1.0f);
  }
  GiveMap(RestoredMap(2, {0, 1, 2, 3, 4, 5, 6, 7}));
  for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  ASSERT_TRUE(sender_.Finished(id));
  for (size_t i = 0; i < former.size(); ++i) Give(former[i], late[i]);
  RowOutput output = batch->outputs[0];
  const std::shared_ptr<float[]> rows = TakeOutput(&output, 3);
  for (size_t i = 0; i < output.keys->original.size(); ++i) EXPECT_GE(rows[3 * i], 100);
}

TEST_F(PulledRowsTest, AnAnswerWithTooFewVersionsCountsAsNone) {
  const DeliveryId id = Add();
  for (const SendRequest& request : sender_.Flush(now_)) {
    AnswerTo answer = AnswerOf(request);
    answer.versions.pop_back();
    Give(request, answer);
  }
  EXPECT_FALSE(sender_.Finished(id));
  now_ += milliseconds(500);
  for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  ExpectRows(*Finish(id));
}

TEST_F(PulledRowsTest, CopiesMayBeMadeWhileTheMapChangesAndThePullIsGivenUp) {
  const DeliveryId id = Add();
  const SendRequests former = sender_.Flush(now_);
  const AnswerTo answer = AnswerOf(former[0]);
  ReceivedRows rows;
  rows.values = answer.values.data();
  rows.versions = answer.versions;
  const RowMoves moves = sender_.PlaceRows(former[0].id, answer.parts, rows);
  GiveMap(RestoredMap(2, {0, 1, 2, 3, 4, 5, 6, 7}));
  MoveRows(moves);
  sender_.OnReply(former[0].id, answer.parts, rows, now_);
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 20);
  for (const SendRequest& request : sender_.Flush(now_)) Serve(request);
  ExpectRows(*Finish(id));

  const DeliveryId given_up = Add();
  for (uint32_t p = 0; p < kPartitions; ++p) Change(p, 21);
  const SendRequests requests = sender_.Flush(now_);
  const AnswerTo last = AnswerOf(requests[0]);
  rows.values = last.values.data();
  rows.versions = last.versions;
  const RowMoves late = sender_.PlaceRows(requests[0].id, last.parts, rows);
  sender_.Cancel(given_up);
  MoveRows(late);
  sender_.OnReply(requests[0].id, last.parts, rows, now_);
  ExpectRows(*PullAll());
}

}  // namespace part_sender_test
}  // namespace muster::sdk
