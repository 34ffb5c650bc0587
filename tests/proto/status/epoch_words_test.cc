#include "proto/status/epoch_words.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::Optional;

TEST(EpochWordsTest, PeopleCountFromOne) {
  EXPECT_EQ(EpochWords({"train", 0, 0}), "epoch 1 of dataset 'train'");
  EXPECT_EQ(EpochWords({"train", 0, 1}), "epochs 1 to 2 of dataset 'train'");
}

TEST(EpochWordsTest, WhatWasWrittenIsRead) {
  for (const EpochRange& epochs :
       {EpochRange{"train", 0, 0}, EpochRange{"a-b.c_1", 9, 99}, EpochRange{"x", 7, 4294967294}}) {
    EXPECT_THAT(EpochsNamedIn(EpochWords(epochs) + ": 4 shards, 40 records"), Optional(epochs));
  }
}

TEST(EpochWordsTest, OtherTextsNameNoEpoch) {
  for (const char* text :
       {"", "epoch", "epoch 0 of dataset 'train'", "epoch x of dataset 'train'",
        "epochs 3 of dataset 'train'", "epochs 3 to 2 of dataset 'train'", "epoch 1 of dataset 'tr",
        "epoch 4294967297 of dataset 'train'", "weights of epoch 1 of dataset 'train'"}) {
    EXPECT_EQ(EpochsNamedIn(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster
