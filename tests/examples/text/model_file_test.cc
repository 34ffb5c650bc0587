#include "examples/text/model_file.h"

#include <gtest/gtest.h>

namespace text {
namespace {

constexpr Shape kTiny{.characters = 5, .context = 3, .width = 4, .heads = 2, .blocks = 1};

std::string Bytes(std::vector<std::vector<float>>& layers) {
  layers.clear();
  for (size_t i = 0; i < LayerCount(kTiny); ++i) layers.push_back(InitialLayer(kTiny, i, 9));
  return FormatModel(kTiny, 123, {layers.begin(), layers.end()});
}

TEST(ModelFileTest, ReadsWhatItWrote) {
  std::vector<std::vector<float>> layers;
  const std::string bytes = Bytes(layers);
  std::string error;
  const std::optional<Model> model = ParseModel(bytes, error);
  ASSERT_TRUE(model) << error;
  EXPECT_EQ(model->shape, kTiny);
  EXPECT_EQ(model->updates, 123);
  EXPECT_EQ(model->layers, layers);
}

TEST(ModelFileTest, RefusesOtherFilesWithTheReason) {
  std::vector<std::vector<float>> layers;
  const std::string bytes = Bytes(layers);
  std::string error;
  for (const std::string& other :
       {std::string(), std::string("hello\n"), bytes.substr(0, 30), "x" + bytes}) {
    EXPECT_FALSE(ParseModel(other, error));
    EXPECT_EQ(error, "the file does not begin with the line of a model");
  }
  const std::string size = std::to_string(WeightCount(kTiny) * 4);
  EXPECT_FALSE(ParseModel(bytes + "xyz", error));
  EXPECT_EQ(error, "the weights have " + std::to_string(WeightCount(kTiny) * 4 + 3) +
                       " bytes, not " + size);
  std::string wrong = bytes;
  wrong.replace(wrong.find("heads 2"), 7, "heads 3");
  EXPECT_FALSE(ParseModel(wrong, error));
  EXPECT_EQ(error, "there is no such model: width is 4, not a multiple of the 3 heads");
}

}  // namespace
}  // namespace text
