#include "base/digest/md5.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// RFC 1321, appendix A.5.
TEST(Md5Test, KnownAnswers) {
  EXPECT_EQ(Md5Base64(""), "1B2M2Y8AsgTpgAmY7PhCfg==");
  EXPECT_EQ(Md5Base64("abc"), "kAFQmDzST7DWlj99KOF/cg==");
}

}  // namespace
}  // namespace muster
