#include "base/strong_id.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace muster {
namespace {

using Apples = StrongId<struct ApplesTag>;
using Pears = StrongId<struct PearsTag>;
static_assert(!std::is_convertible_v<Apples, Pears>);
static_assert(!std::is_convertible_v<uint64_t, Apples>);

TEST(StrongIdTest, OrdersHashesAndPrints) {
  EXPECT_LT(Apples(1), Apples(2));
  EXPECT_EQ(Apples(1).Next(), Apples(2));
  EXPECT_EQ(ToString(Apples(12)), "12");
  const std::unordered_set<Apples> set = {Apples(1), Apples(1), Apples(2)};
  EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace muster
