#include "worker_sdk/member/step_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace muster::internal {
namespace {

using muster::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShardWork Work(const std::string& path) {
  ShardWork work;
  work.files = {{.path = path}};
  return work;
}

class StepReaderTest : public ::testing::Test {
 protected:
  /// What was read, since the last call.
  std::vector<std::string> Reads() { return std::exchange(reads, {}); }
  std::vector<std::string> reads;
  absl::Status result;
  StepReader reader{[this](const ShardWork& work) -> absl::StatusOr<StepReader::Records> {
    reads.push_back(work.files[0].path);
    if (!result.ok()) return result;
    return StepReader::Records{nullptr, std::make_shared<const sdk::ShardRecords>()};
  }};
};

TEST_F(StepReaderTest, AStepIsReadOnceForAllItsAttempts) {
  EXPECT_THAT(reader.Read(Work("a")), IsOk());
  EXPECT_THAT(reader.Read(Work("a")), IsOk());
  EXPECT_THAT(Reads(), ElementsAre("a"));
  EXPECT_THAT(reader.Read(Work("b")), IsOk());
  EXPECT_THAT(reader.Read(Work("a")), IsOk());
  EXPECT_THAT(Reads(), ElementsAre("b", "a"));
}

TEST_F(StepReaderTest, WhatWasReadAheadIsNotReadAgain) {
  EXPECT_TRUE(reader.WantsAhead(Work("b")));
  reader.ReadAhead(Work("b"));
  EXPECT_FALSE(reader.WantsAhead(Work("b")));
  EXPECT_THAT(Reads(), ElementsAre("b"));
  EXPECT_THAT(reader.Read(Work("b")), IsOk());
  EXPECT_THAT(Reads(), IsEmpty());
}

TEST_F(StepReaderTest, AnErrorIsThatOfTheRead) {
  result = absl::NotFoundError("no file");
  reader.ReadAhead(Work("a"));
  Reads();
  EXPECT_EQ(reader.Read(Work("a")).status(), result);
  result = absl::OkStatus();
  EXPECT_THAT(reader.Read(Work("a")), IsOk());
  EXPECT_THAT(Reads(), ElementsAre("a", "a"));
}

TEST_F(StepReaderTest, ATopicIsNotReadAhead) {
  ShardWork topic = Work("");
  topic.stream.emplace();
  EXPECT_FALSE(reader.WantsAhead(topic));
  EXPECT_FALSE(reader.WantsAhead(std::nullopt));
}

}  // namespace
}  // namespace muster::internal
