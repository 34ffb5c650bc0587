#include "examples/text/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"

namespace text {
namespace {

/// A view of random numbers that begins `offset` elements after aligned memory, with gaps of two
/// elements between the rows.
class Numbers {
 public:
  Numbers(muster::Rng& rng, size_t rows, size_t columns) : rows_(rows), columns_(columns) {
    for (size_t i = 0; i < rows * (columns + 2) + 16; ++i) {
      values_.push_back(static_cast<float>(2 * rng.Uniform() - 1));
    }
  }
  View<float> At(size_t offset) {
    copy_.assign(values_.size() + 16, 0);
    std::ranges::copy(values_, copy_.begin() + static_cast<ptrdiff_t>(offset));
    return {copy_.data() + offset, rows_, columns_, columns_ + 2};
  }

 private:
  size_t rows_, columns_;
  std::vector<float> values_, copy_;
};

std::vector<float> Elements(View<float> view) {
  std::vector<float> all;
  for (size_t r = 0; r < view.rows; ++r) {
    all.insert(all.end(), view.row(r).begin(), view.row(r).end());
  }
  return all;
}

/// `product(a, b, out, into)` is the sum over `inner` of at_a(row, i) * at_b(i, column), and has
/// the same bits wherever the memory begins.
template <typename Product, typename AtA, typename AtB>
void ExpectProduct(Numbers a, Numbers b, Numbers out, size_t inner, Product product, AtA at_a,
                   AtB at_b) {
  for (const Into into : {Into::kReplace, Into::kAdd}) {
    const View<float> va = a.At(0), vb = b.At(0);
    View<float> found = out.At(0);
    std::vector<double> expected;
    for (size_t r = 0; r < found.rows; ++r) {
      for (size_t c = 0; c < found.columns; ++c) {
        double sum = into == Into::kAdd ? found.row(r)[c] : 0;
        for (size_t i = 0; i < inner; ++i) sum += double{at_a(va, r, i)} * at_b(vb, i, c);
        expected.push_back(sum);
      }
    }
    product(va, vb, found, into);
    const std::vector<float> elements = Elements(found);
    ASSERT_EQ(elements.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(elements[i], expected[i], 1e-5) << i;
    for (size_t offset = 1; offset < 16; ++offset) {
      View<float> moved = out.At(16 - offset);
      product(a.At(offset), b.At(offset / 2), moved, into);
      ASSERT_EQ(Elements(moved), elements) << "at another place, by " << offset;
    }
  }
}

TEST(ProductsTest, AreSumsOfProductsWithTheSameBitsEverywhere) {
  muster::Rng rng(5);
  // Also so small that Eigen by itself would take another way.
  for (const auto& [rows, inner, columns] : {std::array<size_t, 3>{2, 3, 2},
                                             {1, 4, 5},
                                             {6, 1, 3},
                                             {5, 7, 1},
                                             {33, 20, 17},
                                             {8, 70, 9}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inner << " x " << columns);
    const Numbers out(rng, rows, columns);
    const auto plain = [](View<float> m, size_t r, size_t c) { return m.row(r)[c]; };
    const auto turned = [](View<float> m, size_t r, size_t c) { return m.row(c)[r]; };
    ExpectProduct(
        Numbers(rng, rows, inner), Numbers(rng, inner, columns), out, inner,
        [](auto a, auto b, auto to, Into into) { Multiply<float>(a, b, to, into); }, plain, plain);
    ExpectProduct(
        Numbers(rng, inner, rows), Numbers(rng, inner, columns), out, inner,
        [](auto a, auto b, auto to, Into into) { MultiplyLeftTransposed<float>(a, b, to, into); },
        turned, plain);
    ExpectProduct(
        Numbers(rng, rows, inner), Numbers(rng, columns, inner), out, inner,
        [](auto a, auto b, auto to, Into into) { MultiplyRightTransposed<float>(a, b, to, into); },
        plain, turned);
  }
}

}  // namespace
}  // namespace text
