#include "master/service/manifest_answers.h"

#include <gmock/gmock.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

/// A job of one partition that keeps the weights after its second epoch.
class KeptManifestTest : public ::testing::Test {
 protected:
  KeptManifestTest() {
    CoreOptions options;
    options.partitions = 1;
    options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 2, 2)};
    DurableState state;
    state.meta = MetaRecord{};
    state.kept[EpochIndex(1)][PartitionId(0)] = {.number = SnapshotNumber(MasterIncarnation(1), 7),
                                                 .cut = DoneSeq(3)};
    core_ = std::make_unique<MasterCore>(options, std::move(state), MasterCore::AsFound{});
  }
  std::unique_ptr<MasterCore> core_;
  v1::GetManifestRequest request_;
};

TEST_F(KeptManifestTest, WithoutAnEpochItIsTheNewest) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ManifestFacts facts, KeptManifestOf(*core_, request_));
  ASSERT_EQ(facts.partitions.size(), 1u);
  EXPECT_EQ(facts.partitions[0].number, SnapshotNumber());
}

TEST_F(KeptManifestTest, AKeptEpochIsFound) {
  request_.set_epoch(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const ManifestFacts facts, KeptManifestOf(*core_, request_));
  ASSERT_EQ(facts.partitions.size(), 1u);
  EXPECT_EQ(facts.partitions[0].number, SnapshotNumber(MasterIncarnation(1), 7));
}

TEST_F(KeptManifestTest, WhatIsNotKeptIsRefusedAndSaysWhatIs) {
  request_.set_epoch(0);
  EXPECT_THAT(
      KeptManifestOf(*core_, request_).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("after epoch 1 are not kept; kept are 2")));
  request_.clear_epoch();
  request_.set_best(true);
  EXPECT_THAT(KeptManifestOf(*core_, request_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no epoch is known to be the best")));
}

}  // namespace
}  // namespace muster
