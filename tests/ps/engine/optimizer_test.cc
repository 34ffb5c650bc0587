#include "ps/engine/optimizer.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "ps/engine/schedule.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::ElementsAre;

struct Reference {
  std::string name;
  OptimizerSpec optimizer;
  uint32_t dim;
  bool warmup;              // over 4 steps; else a constant rate
  std::vector<double> row;  // values, then slots, after 5 steps
};

/// Computed in double precision by optimizer_reference.py, from the published formulas and without
/// any code of the engine; for SGD, Adagrad, Adam and AdamW it was compared with PyTorch 2.
const Reference kReferences[] = {
#include "tests/ps/engine/optimizer_reference.inc"
};

constexpr uint64_t kSteps = 5;

std::vector<float> StartRow(const OptimizerSpec& optimizer, uint32_t dim) {
  std::vector<float> row(dim + SlotFloats(optimizer, dim), -99);
  for (uint32_t i = 0; i < dim; ++i) {
    row[i] =
        i % 3 != 0 ? 0.5f - 0.25f * static_cast<float>(i) : -0.125f * static_cast<float>(i + 1);
  }
  InitSlots(optimizer, dim, row.data());
  return row;
}

std::vector<float> Gradient(uint64_t step, uint32_t dim) {
  std::vector<float> gradient(dim);
  for (uint32_t i = 0; i < dim; ++i) {
    gradient[i] = static_cast<float>(static_cast<int>((7 * step + 5 * i + 3) % 23) - 11) / 64;
  }
  return gradient;
}

void ApplyOne(const OptimizerSpec& optimizer, float factor, uint32_t dim, std::vector<float>* row,
              const std::vector<float>& gradient) {
  float* const rows[] = {row->data()};
  ApplyRows(optimizer, factor, dim, rows, gradient.data());
}

TEST(OptimizerTest, FiveStepsEqualTheReference) {
  for (const Reference& reference : kReferences) {
    SCOPED_TRACE(reference.name + (reference.warmup ? " warm-up" : "") + " dim " +
                 std::to_string(reference.dim));
    std::vector<float> row = StartRow(reference.optimizer, reference.dim);
    ASSERT_EQ(row.size(), reference.row.size());
    const ScheduleSpec schedule{.warmup_steps = reference.warmup ? 4u : 0u};
    for (uint64_t step = 0; step < kSteps; ++step) {
      ApplyOne(reference.optimizer, ScheduleFactor(schedule, step), reference.dim, &row,
               Gradient(step, reference.dim));
    }
    for (size_t i = 0; i < row.size(); ++i) {
      const double expected = reference.row[i];
      EXPECT_NEAR(row[i], expected, 2e-6 * std::max(1.0, std::abs(expected))) << "float " << i;
    }
  }
}

TEST(OptimizerTest, EveryOptimizerHasReferences) {
  std::vector<bool> seen(std::variant_size_v<OptimizerSpec>);
  for (const Reference& reference : kReferences) seen[reference.optimizer.index()] = true;
  EXPECT_THAT(seen, ::testing::Each(true));
}

TEST(OptimizerTest, RowsOfABatchDoNotTouchEachOther) {
  for (const Reference& reference : kReferences) {
    const uint32_t dim = reference.dim;
    std::vector<float> together_a = StartRow(reference.optimizer, dim), alone_a = together_a;
    std::vector<float> together_b = together_a, alone_b = together_a;
    std::vector<float> gradients = Gradient(1, dim);
    const std::vector<float> second = Gradient(2, dim);
    gradients.insert(gradients.end(), second.begin(), second.end());
    float* const rows[] = {together_a.data(), together_b.data()};
    ApplyRows(reference.optimizer, 1, dim, rows, gradients.data());
    ApplyOne(reference.optimizer, 1, dim, &alone_a, Gradient(1, dim));
    ApplyOne(reference.optimizer, 1, dim, &alone_b, second);
    EXPECT_EQ(together_a, alone_a) << reference.name;
    EXPECT_EQ(together_b, alone_b) << reference.name;
  }
}

/// Four sums side by side, then the rest: this order is the same on every processor.
float SumOfSquares(const std::vector<float>& values) {
  const auto square = [](float value) {
    const volatile float product = value * value;  // not fused with the sum
    return product;
  };
  float lane[4] = {0, 0, 0, 0};
  const size_t whole = values.size() / 4 * 4;
  for (size_t i = 0; i < whole; ++i) lane[i % 4] += square(values[i]);
  float total = (lane[0] + lane[1]) + (lane[2] + lane[3]);
  for (size_t i = whole; i < values.size(); ++i) total += square(values[i]);
  return total;
}

TEST(OptimizerTest, ARowWiseSumHasTheSameBitsEverywhere) {
  const RowwiseAdagradSpec spec{.learning_rate = 0.1f, .initial_accumulator = 0};
  Rng rng(3);
  for (uint32_t dim = 1; dim < 70; ++dim) {
    std::vector<float> gradient(dim), row(dim + 1, 0.0f);
    for (float& value : gradient) value = static_cast<float>(rng.Uniform() * 2 - 1);
    ApplyOne(spec, 1, dim, &row, gradient);
    EXPECT_EQ(row[dim], SumOfSquares(gradient) / static_cast<float>(dim)) << "dim " << dim;
  }
}

TEST(OptimizerTest, SumIsExactForIntegers) {
  std::vector<float> row(9, 0);
  for (int i = 1; i <= 1000; ++i) {
    ApplyOne(SumSpec{}, 0.5f, 9, &row, std::vector<float>(9, static_cast<float>(i)));
  }
  EXPECT_THAT(row, ::testing::Each(500500.0f));  // the schedule does not touch it
}

TEST(OptimizerTest, AZeroRateChangesNoValueAndMakesNothingInfinite) {
  for (const Reference& reference : kReferences) {
    if (std::holds_alternative<SumSpec>(reference.optimizer)) continue;
    std::vector<float> row = StartRow(reference.optimizer, reference.dim);
    const std::vector<float> before = row;
    ApplyOne(reference.optimizer, 0, reference.dim, &row, Gradient(0, reference.dim));
    EXPECT_TRUE(std::equal(row.begin(), row.begin() + reference.dim, before.begin()))
        << reference.name;
    EXPECT_EQ(FirstNonFinite(row), row.size()) << reference.name;
  }
}

TEST(OptimizerTest, FtrlKeepsAStartValueUnderAZeroGradientAndLassoZeroesSmallOnes) {
  const FtrlSpec spec{.learning_rate = 0.1f, .beta = 1, .lambda1 = 0.5f, .lambda2 = 0.1f};
  std::vector<float> row{0.25f, -2, 0, 0, 0, 0, 0, 0, 0};
  InitSlots(spec, 3, row.data());
  ApplyOne(spec, 1, 3, &row, {0, 0, 0});
  EXPECT_FLOAT_EQ(row[0], 0.25f);
  EXPECT_FLOAT_EQ(row[1], -2);
  EXPECT_EQ(row[2], 0);
  ApplyOne(spec, 1, 3, &row, {0, 0, 0.4f});  // |z| below lambda1
  EXPECT_EQ(row[2], 0);
}

TEST(OptimizerTest, FindsTheFirstNonFiniteValueAtEveryPosition) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (size_t size = 0; size < 40; ++size) {
    std::vector<float> values(size, std::numeric_limits<float>::max());
    EXPECT_EQ(FirstNonFinite(values), size);
    for (size_t at = 0; at < size; ++at) {
      for (const float value : bad) {
        std::vector<float> copy = values;
        copy[at] = value;
        copy[size - 1] = value;
        EXPECT_EQ(FirstNonFinite(copy), at);
      }
    }
  }
}

TEST(OptimizerTest, FindsTheFirstRowThatIsNotFinite) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (size_t floats = 1; floats < 20; ++floats) {
    std::vector<float> one(floats, std::numeric_limits<float>::lowest());
    std::vector<float> two = one, three = one;
    three.push_back(bad[1]);  // behind the row
    const std::array<float*, 3> rows{one.data(), two.data(), three.data()};
    EXPECT_EQ(FirstNonFiniteRow(rows, floats), rows.size());
    EXPECT_EQ(FirstNonFiniteRow({}, floats), 0u);
    for (size_t at = 0; at < floats; ++at) {
      for (const float value : bad) {
        three[at] = value;
        EXPECT_EQ(FirstNonFiniteRow(rows, floats), 2u);
        two[floats - 1 - at] = value;
        EXPECT_EQ(FirstNonFiniteRow(rows, floats), 1u);
        two[floats - 1 - at] = three[at] = one[0];
      }
    }
  }
}

}  // namespace
}  // namespace muster::ps
