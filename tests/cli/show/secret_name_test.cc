#include "cli/show/secret_name.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(SecretNameTest, TheWordMayStandAnywhereInTheName) {
  for (const char* name :
       {"API_KEY", "wandb_api_key", "HF_TOKEN", "MySecret", "DB_PASSWORD_FILE"}) {
    EXPECT_TRUE(LooksSecret(name)) << name;
  }
  for (const char* name : {"", "RATE", "PATH", "OMP_NUM_THREADS", "PASS"}) {
    EXPECT_FALSE(LooksSecret(name)) << name;
  }
}

}  // namespace
}  // namespace muster
