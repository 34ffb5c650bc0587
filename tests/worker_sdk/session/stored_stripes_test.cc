#include "worker_sdk/session/stored_stripes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/temp_dir.h"

namespace muster::internal {
namespace {

TEST(StoredStripesTest, WhatIsStoredIsLoaded) {
  const testing::TempDir directory;
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore(directory.path());
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(StoreStripe(store.get(), "group/r1-s2-a3-0", std::as_bytes(std::span(bytes))).ok());
  EXPECT_EQ(LoadStripe(store.get(), "group/r1-s2-a3-0", 3).value(), bytes);
  EXPECT_TRUE(absl::IsNotFound(LoadStripe(store.get(), "group/other", 3).status()));
}

TEST(StoredStripesTest, ALargeStripeIsStoredPieceByPiece) {
  const testing::TempDir directory;
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore(directory.path());
  for (const size_t size : {size_t{0}, size_t{8} << 20, (size_t{9} << 20) + 1}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    ASSERT_TRUE(StoreStripe(store.get(), "group/s", std::as_bytes(std::span(bytes))).ok());
    EXPECT_TRUE(LoadStripe(store.get(), "group/s", size).value() == bytes) << size;
  }
}

TEST(StoredStripesTest, AnotherSizeIsDataLoss) {
  const testing::TempDir directory;
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore(directory.path());
  const std::string bytes = "abc";
  ASSERT_TRUE(StoreStripe(store.get(), "group/s", std::as_bytes(std::span(bytes))).ok());
  EXPECT_TRUE(absl::IsDataLoss(LoadStripe(store.get(), "group/s", 4).status()));
}

TEST(StoredStripesTest, NoNameLeadsOutOfThePlace) {
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore("/nowhere");
  for (const char* object : {"", "/etc/passwd", "../secret", "group/../../secret"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(StoreStripe(store.get(), object, {}))) << object;
    EXPECT_TRUE(absl::IsInvalidArgument(LoadStripe(store.get(), object, 1).status())) << object;
  }
}

}  // namespace
}  // namespace muster::internal
