#include "kubernetes/pods/quantity.h"

#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

TEST(QuantityTest, WhatTextsMean) {
  EXPECT_EQ(ParseQuantity("2"), 2);
  EXPECT_EQ(ParseQuantity("0.5"), 0.5);
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("250000000n"), 0.25);
  EXPECT_EQ(ParseQuantity("512Mi"), 512.0 * (1 << 20));
  EXPECT_EQ(ParseQuantity("2G"), 2e9);
  EXPECT_EQ(ParseQuantity("3E"), 3e18);
  EXPECT_EQ(ParseQuantity("12e6"), 12e6);
  for (const char* const bad : {"", "m", "5x", "-1", "1 Gi", "nan", "inf", "1.2.3"}) {
    EXPECT_EQ(ParseQuantity(bad), std::nullopt) << bad;
  }
}

TEST(QuantityTest, ResourcesThereAndBack) {
  const Resources resources{.cpus = 0.3, .memory_bytes = (1 << 30) + 1};
  const nlohmann::json values = ResourcesJson(resources);
  EXPECT_EQ(values, nlohmann::json({{"cpu", "300m"}, {"memory", "1073741825"}}));
  EXPECT_EQ(ReadResources(values), resources);
  EXPECT_EQ(ResourcesJson({.cpus = 0.0001})["cpu"], "1m");
  EXPECT_EQ(ResourcesJson({}), nlohmann::json::object());
  EXPECT_EQ(ReadResources({{"cpu", 3}, {"memory", "9Ei"}}), Resources{});
}

}  // namespace
}  // namespace muster::kubernetes
