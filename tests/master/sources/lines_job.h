#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "base/file.h"
#include "job/job_spec.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::testing {

inline constexpr DatasetId kTrain(0);
inline constexpr DatasetId kTest(1);

/// A job that trains on three files of lines, of which one has a header alone, and evaluates on one
/// without a header.
class LinesJobTest : public ::testing::Test {
 protected:
  LinesJobTest() {
    job_.name = "job";
    job_.seed = 7;
    job_.state_directory = dir_.File("state");
    DatasetSpec train;
    train.name = "train";
    train.source = LinesSpec{.files = {dir_.File("train-*.csv")}, .header = true};
    train.epochs = 2;
    train.minibatch_size = 3;
    train.minibatches_per_shard = 2;
    train.shuffle = Shuffle::kAll;
    DatasetSpec test;
    test.name = "test";
    test.mode = DatasetMode::kEvaluate;
    test.source = LinesSpec{.files = {dir_.File("test.csv")}};
    test.minibatch_size = 4;
    test.minibatches_per_shard = 1;
    job_.datasets = {train, test};
    Write("train-0.csv", Lines("header\n", 20, "a"));
    Write("train-1.csv", "header only\n");
    Write("train-2.csv", Lines("header\n", 7, "b"));
    Write("test.csv", Lines("", 9, "t"));
  }

  static LinesSpec& LinesOf(DatasetSpec* dataset) { return std::get<LinesSpec>(dataset->source); }
  static std::string Lines(std::string text, int count, const std::string& prefix) {
    for (int i = 0; i < count; ++i) text += prefix + std::to_string(i * i) + "\n";
    return text;
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), text), IsOk());
  }

  TempDir dir_;
  JobSpec job_;
};

}  // namespace muster::testing
