#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

TEST(RaiseDescriptorLimit, GoesAsFarAsItMay) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t enough, RaiseDescriptorLimit(90));
  EXPECT_EQ(enough, 100u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t raised, RaiseDescriptorLimit(120));
  EXPECT_EQ(raised, 120u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t all, RaiseDescriptorLimit(UINT64_MAX));
  EXPECT_EQ(all, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace muster
