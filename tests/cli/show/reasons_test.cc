#include "cli/show/reasons.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ReasonsTest, EachReasonIsSaidOnceWithItsFirstNames) {
  Reasons reasons;
  EXPECT_THAT(reasons.All(), IsEmpty());
  for (const char* name : {"a", "b", "c"}) reasons.Add(name, "no room");
  reasons.Add("d", "another model");
  EXPECT_THAT(reasons.All(), ElementsAre(Pair("a, b, c", "no room"), Pair("d", "another model")));
  reasons.Add("e", "no room");
  EXPECT_THAT(reasons.All()[0], Pair("a, b, c and 1 more", "no room"));
}

}  // namespace
}  // namespace muster
