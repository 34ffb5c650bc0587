#include "worker_sdk/session/table_options.h"

#include <limits>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TableOptionsTest, OptionsBecomeASpec) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      TableSpec spec,
      SpecOf(SparseTableOptions{
          .name = "embedding",
          .dim = 16,
          .optimizer = Ftrl{.learning_rate = 1, .beta = 2, .lambda1 = 3},
          .initializer = Normal{.mean = 1, .stddev = 2},
          .schedule = StepDecay{.period_steps = 5, .decay = 0.5f, .warmup_steps = 9}}));
  EXPECT_EQ(spec.dim, 16u);
  EXPECT_EQ(spec.optimizer, OptimizerSpec(FtrlSpec{1, 2, 3, 0}));
  EXPECT_EQ(spec.initializer, (InitializerSpec{InitializerSpec::Kind::kNormal, 1, 2}));
  EXPECT_EQ(spec.schedule, (ScheduleSpec{ScheduleSpec::Kind::kStep, 9, 5, 0.5f, 0}));
}

TEST(TableOptionsTest, DenseTensorsAreCutIntoBlocks) {
  MUSTER_ASSERT_OK_AND_ASSIGN(TableSpec small,
                              SpecOf(DenseTableOptions{.name = "b", .shape = {3, 7}}));
  EXPECT_EQ(small.dim, 21u);
  EXPECT_EQ(DenseBlockCount(small), 1u);
  MUSTER_ASSERT_OK_AND_ASSIGN(TableSpec large,
                              SpecOf(DenseTableOptions{.name = "w", .shape = {100, 21}}));
  EXPECT_EQ(large.dim, kDenseBlockMax);
  EXPECT_EQ(DenseBlockCount(large), 3u);
  EXPECT_EQ(ElementCount(large), 2100u);
}

TEST(TableOptionsTest, BadOptionsAreNamed) {
  auto sparse = [](SparseTableOptions options, std::string_view text) {
    if (options.name.empty()) options.name = "t";
    EXPECT_THAT(SpecOf(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text))));
  };
  sparse({.name = "Embedding", .dim = 1}, "\"Embedding\"");
  sparse({.name = std::string(65, 'a'), .dim = 1}, "up to 64");
  sparse({.dim = 0}, "dim is 0");
  sparse({.dim = 65537}, "dim is 65537");
  sparse({.dim = 1, .optimizer = Adam{.beta1 = std::numeric_limits<float>::quiet_NaN()}}, "nan");
  sparse({.dim = 1, .optimizer = Sgd{.learning_rate = -1}}, "-1");
  sparse({.dim = 1, .schedule = CosineDecay{.period_steps = 0}}, "period_steps 0");
  auto dense = [](std::vector<uint64_t> shape) {
    return SpecOf(DenseTableOptions{.name = "w", .shape = std::move(shape)}).status();
  };
  EXPECT_THAT(dense({}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a shape")));
  EXPECT_THAT(dense({4, 0}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least 1")));
  EXPECT_THAT(dense({1ull << 33, 1ull << 33}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("up to")));
}

TEST(TableOptionsTest, AWarmStartBecomesAbsolute) {
  muster::testing::TempDir dir;
  MUSTER_ASSERT_OK_AND_ASSIGN(
      TableSpec spec, SpecOf(SparseTableOptions{.name = "t", .dim = 1, .warm_start = dir.path()}));
  EXPECT_EQ(spec.warm_start_directory, dir.path());
}

}  // namespace
}  // namespace muster::sdk
