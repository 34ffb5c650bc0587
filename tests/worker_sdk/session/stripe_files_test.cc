#include "worker_sdk/session/stripe_files.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_dir.h"

namespace muster::internal {
namespace {

TEST(StripeFilesTest, WhatIsStoredIsLoaded) {
  const testing::TempDir directory;
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(
      StoreStripe(directory.path(), "group/r1-s2-a3-0", std::as_bytes(std::span(bytes))).ok());
  EXPECT_EQ(LoadStripe(directory.path(), "group/r1-s2-a3-0", 3).value(), bytes);
  EXPECT_TRUE(absl::IsNotFound(LoadStripe(directory.path(), "group/other", 3).status()));
}

TEST(StripeFilesTest, AnotherSizeIsDataLoss) {
  const testing::TempDir directory;
  const std::string bytes = "abc";
  ASSERT_TRUE(StoreStripe(directory.path(), "group/s", std::as_bytes(std::span(bytes))).ok());
  EXPECT_TRUE(absl::IsDataLoss(LoadStripe(directory.path(), "group/s", 4).status()));
}

TEST(StripeFilesTest, NoNameLeadsOutOfTheFolder) {
  for (const char* object : {"", "/etc/passwd", "../secret", "group/../../secret"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(StoreStripe("/nowhere", object, {}))) << object;
    EXPECT_TRUE(absl::IsInvalidArgument(LoadStripe("/nowhere", object, 1).status())) << object;
  }
}

}  // namespace
}  // namespace muster::internal
