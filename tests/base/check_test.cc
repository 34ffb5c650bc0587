#include "base/check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(CheckDeathTest, AbortsWithConditionMessageAndPlace) {
  const int shards = 3;
  MUSTER_CHECK(shards == 3);
  EXPECT_DEATH(MUSTER_CHECK_MSG(shards == 4, "three"), "check_test.cc:.*shards == 4.*three");
}

TEST(CheckTest, TheMessageIsMadeOnlyOnFailure) {
  int made = 0;
  const auto message = [&made] {
    ++made;
    return "";
  };
  MUSTER_CHECK_MSG(true, message());
  EXPECT_EQ(made, 0);
}

}  // namespace
}  // namespace muster
