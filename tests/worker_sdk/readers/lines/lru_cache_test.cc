#include "worker_sdk/readers/lines/lru_cache.h"

#include <gtest/gtest.h>

#include <memory>

namespace muster::sdk {
namespace {

TEST(LruCacheTest, WhoWasAskedForLongestAgoGoesFirst) {
  LruCache<int> cache(2);
  cache.Put("a", 1);
  cache.Put("b", 2);
  ASSERT_NE(cache.Find("a"), nullptr);
  cache.Put("c", 3);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_EQ(*cache.Find("a"), 1);
  EXPECT_EQ(*cache.Find("c"), 3);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(LruCacheTest, AnotherValueOfTheSameNameTakesNoMoreRoom) {
  LruCache<int> cache(2);
  cache.Put("a", 1);
  cache.Put("b", 2);
  cache.Put("a", 3);
  EXPECT_EQ(*cache.Find("a"), 3);
  EXPECT_EQ(*cache.Find("b"), 2);
}

TEST(LruCacheTest, WhatGoesIsDestroyedAtOnce) {
  LruCache<std::shared_ptr<int>> cache(1);
  const auto first = std::make_shared<int>(1), second = std::make_shared<int>(2);
  cache.Put("a", first);
  cache.Put("b", second);
  EXPECT_EQ(first.use_count(), 1);
  cache.Clear();
  EXPECT_EQ(second.use_count(), 1);
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace muster::sdk
