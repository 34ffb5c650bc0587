#include "master/service/answers/epoch_answers.h"

#include <gmock/gmock.h>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

constexpr DatasetId kTrain(0);

/// Of a dataset of 5,000 epochs of 40 records: those that the journal says are COMMITTED.
DatasetStatus StatusOf(const DurableState& state) {
  CoreOptions options;
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 5'000, 4)};
  const MasterCore core(options, state, MasterCore::AsFound{});
  DatasetStatus status;
  AddEpochs(core.ledger(), kTrain, &status);
  return status;
}

void AddCommitted(uint32_t number, DurableState* state) {
  EpochRecord epoch{kTrain, EpochIndex(number), {}, 40, {}};
  epoch.committed.Add(0, 4);
  state->epochs[{kTrain, EpochIndex(number)}] = epoch;
}

TEST(EpochAnswersTest, AtTheBeginningTheFirstAreListed) {
  const DatasetStatus status = StatusOf({});
  ASSERT_EQ(status.epochs.size(), 1'000u);
  EXPECT_EQ(status.epochs.back().epoch, 999u);
  EXPECT_EQ(status.omitted_records_expected, 4'000u * 40);
  EXPECT_EQ(status.omitted_records_done, 0u);
}

TEST(EpochAnswersTest, EpochsThatWereThinnedOutAreSummedUp) {
  DurableState state;
  state.meta = MetaRecord{};
  state.whole_epochs[kTrain].dataset = kTrain;
  state.whole_epochs[kTrain].epochs.Add(0, 3'001);
  for (uint32_t e = 0; e <= 3'000; ++e) {
    if (e >= 2'500 || e % 1'024 == 0) AddCommitted(e, &state);
  }
  const DatasetStatus status = StatusOf(state);
  ASSERT_EQ(status.epochs.size(), 3u + 501 + 1);
  EXPECT_EQ(status.epochs[1].epoch, 1'024u);
  EXPECT_EQ(status.epochs[1].shards.committed, 4u);
  EXPECT_EQ(status.epochs[1].records_committed, 40u);
  EXPECT_EQ(status.epochs[3].epoch, 2'500u);
  EXPECT_EQ(status.epochs.back().epoch, 3'001u) << "the one that comes next";
  EXPECT_EQ(status.omitted_records_done, (3'001u - 504) * 40);
  EXPECT_EQ(status.omitted_records_committed, (3'001u - 504) * 40);
  EXPECT_EQ(status.omitted_records_expected, (5'000u - 505) * 40);
}

}  // namespace
}  // namespace muster
