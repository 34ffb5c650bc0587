#include "proto/messages/slot_file.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using Computing = SlotRecord::Computing;

constexpr LeaseToken kToken(MasterIncarnation(3), 9), kOther(MasterIncarnation(3), 10);

std::string_view Bytes(const SlotFile& slot) {
  return {reinterpret_cast<const char*>(&slot), sizeof(slot)};
}

TEST(SlotFileTest, ShowsTheShardBeingComputedUntilItIsLeft) {
  SlotFile slot{};
  EXPECT_EQ(ParseSlot(Bytes(slot)), std::nullopt);
  BeginSlot(&slot, 42);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 42}));
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), std::nullopt);

  EnterShard(&slot, kToken);
  StartMinibatch(&slot, kToken);
  StartMinibatch(&slot, kToken);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 42, .computing = {{kToken, 2}}}));
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), (Computing{kToken, 2}));

  LeaveShard(&slot, kToken);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 42}));
  EndSlot(&slot);
  EXPECT_TRUE(ParseSlot(Bytes(slot))->ended);
}

TEST(SlotFileTest, EveryLoopHasAPlaceOfItsOwn) {
  SlotFile slot{};
  BeginSlot(&slot, 1);
  EnterShard(&slot, kToken);
  StartMinibatch(&slot, kToken);
  EnterShard(&slot, kOther);
  StartMinibatch(&slot, kToken);
  StartMinibatch(&slot, kOther);
  EXPECT_THAT(ParseSlot(Bytes(slot))->computing,
              ElementsAre(Computing{kToken, 2}, Computing{kOther, 1}));
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), std::nullopt) << "which of them crashed is not known";
  LeaveShard(&slot, kToken);
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), (Computing{kOther, 1}));
  StartMinibatch(&slot, kToken);  // a loop that was ended by another thread
  EnterShard(&slot, kToken);
  EXPECT_THAT(ParseSlot(Bytes(slot))->computing,
              ElementsAre(Computing{kToken, 0}, Computing{kOther, 1}));
}

TEST(SlotFileTest, MoreLoopsThanPlacesAreSeen) {
  SlotFile slot{};
  BeginSlot(&slot, 1);
  for (uint64_t i = 1; i <= SlotFile::kLoopsMax; ++i) EnterShard(&slot, LeaseToken::FromValue(i));
  EXPECT_FALSE(ParseSlot(Bytes(slot))->crowded);
  EnterShard(&slot, kToken);
  EXPECT_TRUE(ParseSlot(Bytes(slot))->crowded);
  for (uint64_t i = 2; i <= SlotFile::kLoopsMax; ++i) LeaveShard(&slot, LeaseToken::FromValue(i));
  EXPECT_EQ(ParseSlot(Bytes(slot))->computing.size(), 1u);
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), std::nullopt) << "there is one without a place";
}

TEST(SlotFileTest, LoopsOfSeveralThreadsNeverShareAPlace) {
  SlotFile slot{};
  BeginSlot(&slot, 1);
  std::vector<std::thread> threads;
  for (uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&slot, thread] {
      for (uint64_t i = 0; i <= 1'000; ++i) {
        const LeaseToken token = LeaseToken::FromValue(thread * 10'000 + i);
        EnterShard(&slot, token);
        StartMinibatch(&slot, token);
        if (i < 1'000) LeaveShard(&slot, token);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const SlotRecord record = *ParseSlot(Bytes(slot));
  EXPECT_EQ(record.computing.size(), 4u);
  for (const Computing& loop : record.computing) EXPECT_EQ(loop.minibatches_started, 1u);
  EXPECT_FALSE(record.crowded);
}

TEST(SlotFileTest, ANewProcessForgetsWhatTheFormerOneWrote) {
  SlotFile slot{};
  BeginSlot(&slot, 1);
  for (uint64_t i = 1; i <= SlotFile::kLoopsMax + 1; ++i) {
    EnterShard(&slot, LeaseToken::FromValue(i));
    StartMinibatch(&slot, LeaseToken::FromValue(i));
  }
  EndSlot(&slot);
  BeginSlot(&slot, 2);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 2}));
  EnterShard(&slot, kToken);
  EXPECT_EQ(ParseSlot(Bytes(slot))->Alone(), (Computing{kToken, 0}));
}

TEST(SlotFileTest, TheLayoutIsFixedAndShortOrForeignFilesAreRefused) {
  SlotFile slot{};
  BeginSlot(&slot, 0x1122);
  slot.loops[0].token.store(0x3344);
  slot.loops[0].minibatches_started.store(0x55);
  slot.loops[1].token.store(0x66);
  slot.ended.store(1);
  slot.crowded.store(2);
  const std::string bytes(Bytes(slot));
  EXPECT_EQ(bytes.substr(0, 8), "MSRETSUM");
  EXPECT_EQ(bytes[8], 0x22);
  EXPECT_EQ(bytes[16], 0x44);
  EXPECT_EQ(bytes[24], 0x55);
  EXPECT_EQ(bytes[32], 0x66);
  EXPECT_EQ(bytes[1040], 1);
  EXPECT_EQ(bytes[1044], 2);
  EXPECT_EQ(ParseSlot(std::string_view(bytes).substr(0, 1047)), std::nullopt);
  EXPECT_EQ(ParseSlot(std::string(1048, 'x')), std::nullopt);
}

}  // namespace
}  // namespace muster
