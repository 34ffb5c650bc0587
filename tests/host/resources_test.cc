#include "host/resources.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ResourcesTest, AreShownWithWhatIsNotLimited) {
  EXPECT_EQ(ToString(Resources{.cpus = 0.5, .memory_bytes = 512 << 20}), "0.5 cores, 512 MiB");
  EXPECT_EQ(ToString(Resources{.cpus = 1, .memory_bytes = 0}), "1 core, any memory");
  EXPECT_EQ(ToString(Resources{}), "any cores, any memory");
}

TEST(ResourcesTest, BytesAreExactWhereLimitsAre) {
  EXPECT_EQ(BytesText(1000), "1000 bytes");
  EXPECT_EQ(BytesText(277'292), "271 KiB");
  EXPECT_EQ(BytesText(uint64_t{768} << 20), "768 MiB");
  EXPECT_EQ(BytesText(uint64_t{1536} << 20), "1.5 GiB");
  EXPECT_EQ(BytesText((uint64_t{1} << 30) + (uint64_t{1} << 20)), "1025 MiB");
}

}  // namespace
}  // namespace muster
