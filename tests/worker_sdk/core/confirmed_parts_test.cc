#include "worker_sdk/core/confirmed_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker_sdk/core/core_fixture.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kAll = 1'000'000;
const PartitionId kOne{0}, kOther{1};

/// Only the first partition has been restored, at `restored_at`.
PartitionMap Restored(uint64_t restored_at) {
  PartitionMap map = MapOf(restored_at, restored_at);
  map.partitions[0].restored_at = RestoreEpoch(restored_at);
  return map;
}

std::vector<uint32_t> Minibatches(const std::vector<ConfirmedParts::Minibatch>& doubted) {
  std::vector<uint32_t> minibatches;
  for (const auto& one : doubted) minibatches.push_back(one.minibatch.value());
  return minibatches;
}

TEST(ConfirmedPartsTest, OnlyWhatARestoredPartitionSaidBeforeIsDoubted) {
  ConfirmedParts parts;
  parts.TakeMap(Restored(3));
  for (uint32_t m : {0u, 63u, 64u, 200u}) {
    parts.Add(kOne, MinibatchIndex(m), RestoreEpoch(3));
    parts.Add(kOther, MinibatchIndex(m), RestoreEpoch(3));
  }
  parts.TakeMap(Restored(3));
  EXPECT_THAT(parts.Doubted(kAll), IsEmpty()) << "it was restored before they were said";
  parts.TakeMap(Restored(4));
  parts.Add(kOne, MinibatchIndex(300), RestoreEpoch(4));
  const auto doubted = parts.Doubted(kAll);
  EXPECT_THAT(Minibatches(doubted), ElementsAre(0, 63, 64, 200));
  for (const auto& one : doubted) EXPECT_THAT(one.partitions, ElementsAre(kOne));
  EXPECT_THAT(Minibatches(parts.Doubted(3)), ElementsAre(0, 63, 64));
}

TEST(ConfirmedPartsTest, OneRestoreAfterAnotherDoubtsNothingElse) {
  ConfirmedParts parts;
  parts.TakeMap(Restored(3));
  parts.Add(kOne, MinibatchIndex(65), RestoreEpoch(3));
  for (const uint64_t restored_at : {4u, 5u}) {
    parts.TakeMap(Restored(restored_at));
    EXPECT_THAT(Minibatches(parts.Doubted(kAll)), ElementsAre(65));
  }
}

TEST(ConfirmedPartsTest, AnAnswerToARequestOfBeforeTheRestoreRemovesNoDoubt) {
  ConfirmedParts parts;
  parts.TakeMap(Restored(3));
  parts.Add(kOne, MinibatchIndex(1), RestoreEpoch(3));
  parts.TakeMap(Restored(5));
  parts.Add(kOne, MinibatchIndex(1), RestoreEpoch(4));
  parts.Lose(kOne, MinibatchIndex(1), RestoreEpoch(4));
  EXPECT_THAT(parts.Lost(), IsEmpty());
  parts.Add(kOne, MinibatchIndex(2), RestoreEpoch(4));
  EXPECT_THAT(Minibatches(parts.Doubted(kAll)), ElementsAre(1, 2));
  parts.Add(kOne, MinibatchIndex(1), RestoreEpoch(5));
  parts.Lose(kOne, MinibatchIndex(2), RestoreEpoch(5));
  EXPECT_THAT(parts.Doubted(kAll), IsEmpty());
  EXPECT_THAT(Minibatches(parts.Lost()), ElementsAre(2));
  parts.Add(kOne, MinibatchIndex(1), RestoreEpoch(4));
  EXPECT_THAT(parts.Doubted(kAll), IsEmpty()) << "a late answer makes no doubt";
}

TEST(ConfirmedPartsTest, WhatIsLostStaysSoUntilItIsPushedThereAgain) {
  ConfirmedParts parts;
  parts.TakeMap(Restored(3));
  for (uint32_t m : {1u, 70u, 71u}) parts.Lose(kOne, MinibatchIndex(m), RestoreEpoch(3));
  parts.Lose(kOther, MinibatchIndex(70), RestoreEpoch(3));
  parts.Pushed(kOne, MinibatchIndex(1));
  parts.Pushed(kOther, MinibatchIndex(71));
  parts.Pushed(kOne, MinibatchIndex(70));
  parts.TakeMap(Restored(4));
  const auto lost = parts.Lost();
  EXPECT_THAT(Minibatches(lost), ElementsAre(70, 71));
  EXPECT_THAT(lost[0].partitions, ElementsAre(kOther));
  parts.Add(kOther, MinibatchIndex(70), RestoreEpoch(3));
  EXPECT_THAT(Minibatches(parts.Lost()), ElementsAre(71));
  parts.ForgetLost();
  EXPECT_THAT(parts.Lost(), IsEmpty());
}

}  // namespace
}  // namespace muster::sdk
