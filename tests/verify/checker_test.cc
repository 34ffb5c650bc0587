#include "verify/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "verify/workload/contributions.h"

namespace muster::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Workload kWorkload{.records = 300, .epochs = 3};
constexpr uint64_t kMinibatch = 32;

/// Tables that can be trained, and spoilt.
struct Model {
  using Rows = std::map<uint64_t, std::vector<float>>;
  Rows ids, buckets, wide;
  std::vector<float> totals = std::vector<float>(kTotalsSize);

  void Train(uint64_t id, uint32_t epoch) {
    const Contribution added = ContributionOf(id, epoch);
    Add(&ids[id], added.ids, 0);
    Add(&buckets[added.bucket_key], added.buckets, kBucketsInitial);
    Add(&wide[added.wide_key], added.wide, 0);
    Add(&totals, added.totals, 0);
  }

 private:
  static void Add(std::vector<float>* row, std::span<const float> added, float initial) {
    if (row->empty()) row->assign(added.size(), initial);
    for (size_t j = 0; j < added.size(); ++j) (*row)[j] += added[j];
  }
};

/// A table as an export has it.
struct Exported {
  explicit Exported(const Model::Rows& rows) {
    for (const auto& [key, row] : rows) {
      keys.push_back(key);
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  SparseRows view() const { return {keys, values}; }
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

Attempt MinibatchOf(uint32_t epoch, uint64_t index) {
  Attempt attempt{.shard = {"numbers", epoch, index}};
  const uint64_t end = std::min(kWorkload.records, (index + 1) * kMinibatch);
  for (uint64_t id = index * kMinibatch; id < end; ++id) attempt.ids.push_back(id);
  return attempt;
}

/// A job without faults, which a test spoils before it is checked.
class CheckerTest : public ::testing::Test {
 protected:
  CheckerTest() {
    for (uint32_t e = 0; e < kWorkload.epochs; ++e) {
      for (uint64_t id = 0; id < kWorkload.records; ++id) model_.Train(id, e);
      for (uint64_t index = 0; index * kMinibatch < kWorkload.records; ++index) {
        histories_.push_back(MinibatchOf(e, index));
      }
      ledger_.epochs.push_back({.expected = 300, .committed = 300, .mean_id = 149.5});
    }
  }

  Verdict Judge() const {
    AttemptLog attempts(kWorkload);
    for (const Attempt& attempt : histories_) attempts.Add(attempt);
    const Exported ids(model_.ids);
    const Exported buckets(model_.buckets);
    const Exported wide(model_.wide);
    return Check(kWorkload, attempts, ledger_,
                 {ids.view(), buckets.view(), wide.view(), model_.totals});
  }

  Model model_;
  std::vector<Attempt> histories_;
  Ledger ledger_;
};

TEST_F(CheckerTest, JobWithoutFaults) {
  const Verdict verdict = Judge();
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.attempts, 900u);
  EXPECT_EQ(verdict.acknowledged, 900u);
  EXPECT_EQ(verdict.redelivered, 0u);
  EXPECT_EQ(verdict.rows, 300u + 61 + 257 + 1);
  EXPECT_THAT(verdict.samples, IsEmpty());
}

TEST(VerdictTest, EveryFaultFailsIt) {
  EXPECT_TRUE(Verdict{.redelivered = 5}.ok());
  EXPECT_FALSE(Verdict{.lost = 1}.ok());
  EXPECT_FALSE(Verdict{.unexpected = 1}.ok());
  EXPECT_FALSE(Verdict{.duplicated = 1}.ok());
  EXPECT_FALSE(Verdict{.wrong_rows = 1}.ok());
  EXPECT_FALSE(Verdict{.disagreements = {"the ledger"}}.ok());
}

TEST_F(CheckerTest, RedeliveredIsCountedAndNoFault) {
  histories_.push_back(MinibatchOf(1, 0));
  histories_.push_back(MinibatchOf(1, 0));
  histories_.push_back(MinibatchOf(2, 9));  // 12 records
  ledger_.redelivered_minibatches = 3;
  const Verdict verdict = Judge();
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.attempts, 900u + 76);
  EXPECT_EQ(verdict.redelivered, 76u);
  EXPECT_EQ(verdict.redelivered_minibatches, 3u);
}

TEST_F(CheckerTest, DuplicatedRecord) {
  model_.Train(17, 1);
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.duplicated, 4u);  // an effect in each of four tables
  EXPECT_EQ(verdict.lost, 0u);
  EXPECT_EQ(verdict.unexpected, 0u);
  EXPECT_EQ(verdict.wrong_rows, 4u);
  ASSERT_EQ(verdict.samples.size(), 4u);
  EXPECT_EQ(verdict.samples[0].table, "ids");
  EXPECT_EQ(verdict.samples[0].key, 17u);
  EXPECT_THAT(verdict.samples[0].found, HasSubstr("1, 2, 1 effects by epoch"));
  EXPECT_THAT(verdict.samples[0].expected, HasSubstr("1, 1, 1"));
}

TEST_F(CheckerTest, DuplicatedInOnePartitionAlone) {
  for (size_t j = 0; j < kWideDim; ++j) model_.wide[0][j] += ContributionOf(0, 0).wide[j];
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.duplicated, 1u);
  EXPECT_EQ(verdict.wrong_rows, 1u);
}

TEST_F(CheckerTest, DuplicatedInTheDenseTableAlone) {
  for (size_t j = 0; j < kTotalsSize; ++j) model_.totals[j] += ContributionOf(5, 0).totals[j];
  EXPECT_FALSE(Judge().ok());
  EXPECT_EQ(Judge().duplicated, 1u);
}

TEST_F(CheckerTest, LostRecord) {
  model_.ids[17][0] -= 64;  // of epoch 2
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.lost, 1u);
  EXPECT_EQ(verdict.duplicated, 0u);
  EXPECT_THAT(verdict.samples.at(0).found, HasSubstr("1, 1, 0 effects"));
}

TEST_F(CheckerTest, LostInOneEpochAndDuplicatedInAnotherAreTwoFaults) {
  model_.ids[17][0] += 8 - 64;
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.lost, 1u);
  EXPECT_EQ(verdict.duplicated, 1u);
  EXPECT_EQ(verdict.wrong_rows, 1u);
}

TEST_F(CheckerTest, LostRows) {
  model_.ids.erase(5);
  model_.buckets.erase(7);  // of 5 records, 3 epochs
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.lost, 3u + 15);
  EXPECT_EQ(verdict.wrong_rows, 2u);
}

TEST_F(CheckerTest, OneRecordInAnothersPlaceIsWrong) {
  // Record 61 instead of record 0: the same row of `buckets`, as often, other values.
  for (size_t j = 0; j < kBucketsDim; ++j) {
    model_.buckets[0][j] += ContributionOf(61, 0).buckets[j] - ContributionOf(0, 0).buckets[j];
  }
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.wrong_rows, 1u);
}

TEST_F(CheckerTest, UnexpectedRows) {
  model_.ids[300] = {1};
  model_.buckets[61] = {3, 0, 0, 0};
  model_.wide[1] = std::vector<float>(kWideDim, 1);
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.unexpected, 3u);
  EXPECT_EQ(verdict.lost, 0u);
}

TEST_F(CheckerTest, EffectInAnEpochThatTheJobDoesNotHave) {
  model_.ids[3][0] += 512;
  EXPECT_EQ(Judge().unexpected, 1u);
  EXPECT_FALSE(Judge().ok());
}

TEST_F(CheckerTest, NoNumberOfEffects) {
  for (const float value : {-1.0f, 72.5f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    model_.ids[3] = {value};
    EXPECT_FALSE(Judge().ok()) << value;
    EXPECT_EQ(Judge().wrong_rows, 1u) << value;
  }
}

TEST_F(CheckerTest, CommittedThoughNoWorkerAttemptedIt) {
  histories_.pop_back();  // 12 records of epoch 2
  const Verdict verdict = Judge();
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.unexpected, 12u);
  EXPECT_THAT(verdict.disagreements,
              ElementsAre(HasSubstr("300 records committed, but workers began 288")));
}

TEST_F(CheckerTest, LedgerThatSaysLessOrMore) {
  ledger_.epochs[1].committed = 299;
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("epoch 1: the ledger has 299 of 300")));
  ledger_.epochs[1] = {.expected = 301, .committed = 300, .mean_id = 149.5};
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("300 of 301")));
  ledger_.epochs.pop_back();
  ledger_.epochs[1].expected = 300;
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("2 epochs, but the job has 3")));
  EXPECT_FALSE(Judge().ok());
}

TEST_F(CheckerTest, WhatIsNotAcknowledgedIsNotLost) {
  ledger_.epochs[2].committed = 299;
  model_.ids[17][0] -= 64;
  EXPECT_EQ(Judge().lost, 0u);
  model_.ids[18][0] -= 64;
  EXPECT_EQ(Judge().lost, 1u);
}

TEST_F(CheckerTest, MetricsOfAnotherInput) {
  ledger_.epochs[0].mean_id = 149.0;
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("the metric `id` is 149")));
  ledger_.epochs[0].mean_id = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Judge().ok());
}

TEST_F(CheckerTest, RedeliveriesThatLedgerAndWorkersCountDifferently) {
  for (int i = 0; i < 5; ++i) histories_.push_back(MinibatchOf(0, 1));
  ledger_.redelivered_minibatches = 3;
  EXPECT_THAT(
      Judge().disagreements,
      ElementsAre(HasSubstr("the ledger counts 3 re-delivered minibatches, but workers count 5")));
  ledger_.redelivered_tolerance = 2;
  EXPECT_TRUE(Judge().ok());
  ledger_.redelivered_minibatches = 8;
  EXPECT_FALSE(Judge().ok());
}

TEST_F(CheckerTest, LedgerThatSawNoRedelivery) {
  for (int i = 0; i < 5; ++i) histories_.push_back(MinibatchOf(0, 1));
  ledger_.redelivered_tolerance = 100;
  EXPECT_THAT(Judge().disagreements,
              ElementsAre("the ledger counts no re-delivered minibatch, but workers count 5"));
  ledger_.redelivered_unseen_max = 5;
  EXPECT_TRUE(Judge().ok());
  histories_.push_back(MinibatchOf(0, 1));
  EXPECT_FALSE(Judge().ok());
  ledger_.redelivered_minibatches = 1;
  EXPECT_TRUE(Judge().ok());
}

TEST_F(CheckerTest, MinibatchThatHadOtherRecords) {
  histories_.push_back(MinibatchOf(0, 0));
  histories_.back().ids[3] = 40;
  ledger_.redelivered_minibatches = 1;
  const Verdict verdict = Judge();
  EXPECT_THAT(verdict.disagreements, ElementsAre(HasSubstr("numbers/0/0, step 0: it had "
                                                           "other records")));
}

TEST(AttemptLogTest, ARunMayHaveOnlySomeMinibatchesOfItsShard) {
  AttemptLog log(kWorkload);
  Attempt first{.shard = {"numbers", 0, 2}, .step = 8, .run = 1, .ids = {64, 65}};
  Attempt second{.shard = first.shard, .step = 9, .run = 1, .ids = {66, 67}};
  log.Add(first);
  log.Add(second);
  second.run = 2;
  log.Add(second);  // a server had lost this one alone
  EXPECT_THAT(log.contradictions(), IsEmpty());
  EXPECT_EQ(log.redelivered_minibatches(), 1u);
}

TEST_F(CheckerTest, RecordInTwoMinibatches) {
  histories_.push_back({.shard = {"numbers", 1, 100}, .step = 3, .ids = {7}});
  EXPECT_THAT(Judge().disagreements,
              ElementsAre(HasSubstr("step 3: record 7 is also in another minibatch")));
}

TEST_F(CheckerTest, AttemptBeyondTheInput) {
  histories_.push_back({.shard = {"numbers", 1, 100}, .ids = {300}});
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("record 300 is not in the input")));
  histories_.back() = {.shard = {"numbers", 3, 0}, .ids = {3}};
  EXPECT_THAT(Judge().disagreements, ElementsAre(HasSubstr("no such epoch")));
}

TEST_F(CheckerTest, SamplesAreFew) {
  for (uint64_t id = 0; id < kWorkload.records; ++id) {
    model_.Train(id, 0);
    histories_.push_back({.shard = {"numbers", 1, 1000 + id}, .ids = {id}});
  }
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.duplicated, 1200u);
  EXPECT_EQ(verdict.wrong_rows, verdict.rows);
  EXPECT_EQ(verdict.samples.size(), Verdict::kSamplesMax);
  EXPECT_EQ(verdict.disagreements.size(), AttemptLog::kContradictionsMax);
}

}  // namespace
}  // namespace muster::verify
