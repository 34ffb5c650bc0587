#include "worker_sdk/core/row_kernels.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "tests/support/status_matchers.h"
#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk {
namespace {

/// Rows of some ids in two parts, in an order of their own, and keys that ask for them.
struct Case {
  Case(size_t keys_count, size_t ids, size_t row_dim, Rng* rng) : dim(row_dim) {
    std::vector<std::vector<float>> values(2);
    for (size_t id = 0; id < ids; ++id) {
      part.push_back(static_cast<uint32_t>(rng->Below(2)));
      offset.push_back(values[part.back()].size());
      for (size_t c = 0; c < dim; ++c) {
        values[part.back()].push_back(static_cast<float>(rng->Below(1000)));
      }
    }
    blocks = values;
    // Ids count in the order of first appearance.
    for (size_t key = 0; key < keys_count; ++key) {
      const size_t seen = key < ids ? key : rng->Below(ids);
      inverse.push_back(static_cast<uint32_t>(seen));
    }
  }
  size_t dim;
  std::vector<uint32_t> part;
  std::vector<uint64_t> offset;
  std::vector<uint32_t> inverse;
  std::vector<std::vector<float>> blocks;
};

TEST(RowKernelsTest, RowsArePlacedWhereTheirKeysAppearFirstAndThenRepeated) {
  Rng rng(3);
  for (const size_t dim : {1u, 3u, 4u, 8u, 17u, 64u, 300u}) {
    for (const size_t keys : {1u, 7u, 9u, 100u}) {
      for (const bool repeats : {false, true}) {
        const size_t ids = repeats ? std::min<size_t>(keys, 40) : keys;
        Case rows(keys, ids, dim, &rng);
        std::vector<uint32_t> first;
        for (uint32_t key = 0; key < keys; ++key) {
          if (rows.inverse[key] == first.size()) first.push_back(key);
        }
        if (!repeats) first.clear();
        std::vector<float> out(keys * dim + 1, -1);
        for (uint32_t part = 0; part < 2; ++part) {
          std::vector<uint32_t> of_part;
          for (uint32_t id = 0; id < ids; ++id) {
            if (rows.part[id] == part) of_part.push_back(id);
          }
          PlaceRows(of_part, first, dim, rows.blocks[part].data(), out.data());
        }
        if (repeats) RepeatRows(rows.inverse, first, dim, out.data());
        for (size_t key = 0; key < keys; ++key) {
          const uint32_t id = rows.inverse[key];
          for (size_t c = 0; c < dim; ++c) {
            ASSERT_EQ(out[key * dim + c], rows.blocks[rows.part[id]][rows.offset[id] + c])
                << dim << " " << key << " " << c;
          }
        }
        EXPECT_EQ(out[keys * dim], -1) << "it wrote beyond the rows";
        std::vector<float> by_id(ids * dim), expanded(keys * dim + 1, -1);
        for (size_t key = 0; key < keys; ++key) {
          std::copy_n(&out[key * dim], dim, &by_id[rows.inverse[key] * dim]);
        }
        ExpandRows(rows.inverse, dim, by_id.data(), expanded.data());
        EXPECT_EQ(expanded, out);
      }
    }
  }
}

TEST(RowKernelsTest, GradientsOfAKeyAddUpWhateverTheMemoryHeld) {
  Rng rng(4);
  for (const size_t dim : {1u, 3u, 4u, 8u, 17u, 64u}) {
    const size_t keys = 100, ids = 30;
    Case rows(keys, ids, dim, &rng);
    std::vector<uint64_t> offset(ids);
    for (size_t id = 0; id < ids; ++id) offset[id] = (ids - 1 - id) * dim;
    std::vector<float> gradients(keys * dim);
    for (float& value : gradients) value = static_cast<float>(rng.Below(100));
    std::vector<float> expected(ids * dim, 0);
    for (size_t key = 0; key < keys; ++key) {
      for (size_t c = 0; c < dim; ++c) {
        expected[offset[rows.inverse[key]] + c] += gradients[key * dim + c];
      }
    }
    const std::vector<float> once = expected;
    for (const Reading reading : {Reading::kSoon, Reading::kLater}) {
      RowVector<float> values(ids * dim);
      std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
      EXPECT_TRUE(SumRows(rows.inverse, offset, keys, dim, gradients.data(), RowsBefore::kNone,
                          reading, values.data()));
      EXPECT_TRUE(std::ranges::equal(values, once)) << dim;
      EXPECT_TRUE(SumRows(rows.inverse, offset, keys, dim, gradients.data(), RowsBefore::kSome,
                          reading, values.data()));
      for (float& value : expected) value *= 2;
      EXPECT_TRUE(std::ranges::equal(values, expected)) << dim;
      expected = once;
    }
  }
}

TEST(RowKernelsTest, ARowIsCopiedWhereverItLiesAndWhoeverReadsIt) {
  std::vector<float> from(80);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for (const Reading reading : {Reading::kSoon, Reading::kLater}) {
    for (const size_t floats : {0u, 1u, 8u, 15u, 64u}) {
      for (const size_t begin : {0u, 1u, 8u}) {
        RowVector<float> to(80);
        std::ranges::fill(to, -1.0f);
        CopyRow(from.data() + begin, floats, reading, to.data() + begin);
        FinishRows();
        for (size_t i = 0; i < to.size(); ++i) {
          const bool in = i >= begin && i < begin + floats;
          ASSERT_EQ(to[i], in ? from[i] : -1) << floats << " floats from " << begin;
        }
      }
    }
  }
}

TEST(RowKernelsTest, ASumThatIsNotFiniteIsSeenInEveryColumn) {
  constexpr size_t kDim = 19;
  const std::vector<uint64_t> offset = {0, kDim};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::max()}) {
    for (size_t at = 0; at < kDim; ++at) {
      std::vector<float> values(2 * kDim), gradients(3 * kDim, 1.0f);
      gradients[at] = gradients[2 * kDim + at] = bad;  // of one key; twice the maximum is infinity
      const std::vector<uint32_t> inverse = {0, 1, 0};
      EXPECT_FALSE(SumRows(inverse, offset, 3, kDim, gradients.data(), RowsBefore::kNone,
                           Reading::kSoon, values.data()))
          << bad << " in column " << at;
    }
  }
}

}  // namespace
}  // namespace muster::sdk
