#include "sharding/slot_file.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

std::string_view Bytes(const SlotFile& slot) {
  return {reinterpret_cast<const char*>(&slot), sizeof(slot)};
}

TEST(SlotFileTest, ShowsTheShardBeingComputedUntilItIsLeft) {
  SlotFile slot{};
  EXPECT_EQ(ParseSlot(Bytes(slot)), std::nullopt);
  BeginSlot(&slot, 42);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 42}));

  const LeaseToken token(MasterIncarnation(3), 9);
  EnterShard(&slot, token);
  StartMinibatch(&slot);
  StartMinibatch(&slot);
  EXPECT_EQ(ParseSlot(Bytes(slot)),
            (SlotRecord{.incarnation = 42, .computing_token = token, .minibatches_started = 2}));

  LeaveShard(&slot);
  EXPECT_EQ(ParseSlot(Bytes(slot))->computing_token, LeaseToken());
  EndSlot(&slot);
  EXPECT_TRUE(ParseSlot(Bytes(slot))->ended);
}

TEST(SlotFileTest, ANewProcessForgetsWhatTheFormerOneWrote) {
  SlotFile slot{};
  BeginSlot(&slot, 1);
  EnterShard(&slot, LeaseToken(MasterIncarnation(3), 9));
  StartMinibatch(&slot);
  EndSlot(&slot);
  BeginSlot(&slot, 2);
  EXPECT_EQ(ParseSlot(Bytes(slot)), (SlotRecord{.incarnation = 2}));
}

TEST(SlotFileTest, TheLayoutIsFixedAndShortOrForeignFilesAreRefused) {
  SlotFile slot{};
  BeginSlot(&slot, 0x1122);
  slot.computing_token.store(0x3344);
  slot.minibatches_started.store(0x55);
  slot.ended.store(1);
  const std::string bytes(Bytes(slot));
  EXPECT_EQ(bytes.substr(0, 8), "LSRETSUM");
  EXPECT_EQ(bytes[8], 0x22);
  EXPECT_EQ(bytes[16], 0x44);
  EXPECT_EQ(bytes[24], 0x55);
  EXPECT_EQ(bytes[28], 1);
  EXPECT_EQ(ParseSlot(std::string_view(bytes).substr(0, 31)), std::nullopt);
  EXPECT_EQ(ParseSlot(std::string(32, 'x')), std::nullopt);
}

}  // namespace
}  // namespace muster
