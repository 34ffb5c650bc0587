#include "base/words/dataset_modes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

TEST(DatasetModesTest, EachModeHasATextAndEachTextItsMode) {
  EXPECT_EQ(std::vector<std::string>(kDatasetModes.begin(), kDatasetModes.end()),
            (std::vector<std::string>{"train", "evaluate", "predict"}));
  for (const DatasetMode mode :
       {DatasetMode::kTrain, DatasetMode::kEvaluate, DatasetMode::kPredict}) {
    EXPECT_EQ(DatasetModeOf(ToString(mode)), mode);
  }
  EXPECT_EQ(DatasetModeOf("trains"), std::nullopt);
  EXPECT_EQ(DatasetModeOf(""), std::nullopt);
}

}  // namespace
}  // namespace muster
