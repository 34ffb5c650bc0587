#include "cli/metrics/points.h"

#include <gmock/gmock.h>

#include <limits>

namespace muster::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;

constexpr WallTime kToday{9'000'000};

EpochStatus Epoch(uint32_t number, std::map<std::string, double> metrics, uint64_t committed = 4) {
  EpochStatus epoch{.epoch = number, .metrics = std::move(metrics)};
  epoch.shards = {.total = 4, .committed = committed};
  return epoch;
}

MasterEvent Committed(uint64_t wall_us, std::string text) {
  return {.wall_us = wall_us, .kind = "epoch-committed", .text = std::move(text)};
}

TEST(PointsTest, EveryCommittedEpochHasItsMetrics) {
  JobStatus status;
  status.datasets.push_back({.name = "train",
                             .epochs = {Epoch(0, {{"auc", 0.7}, {"loss", 0.5}}),
                                        Epoch(1, {{"auc", 0.8}}), Epoch(2, {{"auc", 0.9}}, 3)}});
  status.datasets.push_back({.name = "test", .epochs = {Epoch(0, {{"auc", 0.6}})}});
  const PointsOfDatasets points = EpochPoints(
      status,
      {Committed(2'500'000, "epoch 1 of dataset 'train': 4 shards, 40 records"),
       Committed(3'000'000, "epoch 1 of dataset 'test': 4 shards, 10 records"),
       {.wall_us = 4'000'000, .kind = "note", .text = "epoch 2 of dataset 'train': no"}},
      kToday);
  ASSERT_THAT(points, ElementsAre(Key("test"), Key("train")));
  EXPECT_THAT(points.at("test"), ElementsAre(Point{"auc", 1, 3.0, 0.6}));
  EXPECT_THAT(points.at("train"), ElementsAre(Point{"auc", 1, 2.5, 0.7}, Point{"loss", 1, 2.5, 0.5},
                                              Point{"auc", 2, 9.0, 0.8}))
      << "epoch 2 has no event any more, epoch 3 is not committed";
}

TEST(PointsTest, OneEventMayNameManyEpochs) {
  JobStatus status;
  status.datasets.push_back({.name = "train"});
  for (uint32_t epoch = 0; epoch < 5; ++epoch) {
    status.datasets[0].epochs.push_back(Epoch(epoch, {{"auc", 0.5}}));
  }
  const PointsOfDatasets points =
      EpochPoints(status,
                  {Committed(2'000'000, "epoch 1 of dataset 'train': 4 shards, 40 records"),
                   Committed(3'000'000, "epochs 2 to 4 of dataset 'train': 12 shards, 120 records"),
                   Committed(4'000'000, "epochs 1 to 9 of dataset 'test': 9 shards, 90 records")},
                  kToday);
  EXPECT_THAT(points.at("train"), ElementsAre(Point{"auc", 1, 2.0, 0.5}, Point{"auc", 2, 3.0, 0.5},
                                              Point{"auc", 3, 3.0, 0.5}, Point{"auc", 4, 3.0, 0.5},
                                              Point{"auc", 5, 9.0, 0.5}));
}

TEST(PointsTest, WhatMayChangeIsLeftOut) {
  JobStatus status;
  EpochStatus failed = Epoch(0, {{"auc", 0.7}}, 3);
  failed.shards.failed = 1;
  const EpochStatus undefined = Epoch(1, {{"auc", std::numeric_limits<double>::quiet_NaN()}});
  EpochStatus not_begun = Epoch(2, {{"auc", 0.0}}, 0);
  not_begun.shards.total = 0;
  status.datasets.push_back({.name = "train", .epochs = {failed, undefined, not_begun}});
  status.datasets.push_back({.name = "clicks", .epochs = {Epoch(0, {{"auc", 0.7}})}});
  status.datasets[1].stream = StreamStatus{.open = true};
  EXPECT_THAT(EpochPoints(status, {}, kToday), IsEmpty());
  status.datasets[1].stream->open = false;
  EXPECT_THAT(EpochPoints(status, {}, kToday), ElementsAre(Key("clicks")));
}

WallTime Second(int64_t seconds) {
  return WallTime(seconds * 1'000'000);
}

TEST(PointsTest, ARateForEveryTenSeconds) {
  RateSampler sampler;
  for (int i = 0; i <= 25; ++i) {
    sampler.Add(Second(100 + i), static_cast<uint64_t>(1'000 + 50 * i), i == 0);
  }
  EXPECT_THAT(sampler.points(),
              ElementsAre(Point{kRateTag, 1'500, 110, 50}, Point{kRateTag, 2'000, 120, 50}));
}

TEST(PointsTest, ANewScalerGoesOnWhereTheLastOneEnded) {
  RateSampler sampler;
  for (int i = 0; i <= 12; ++i) {
    sampler.Add(Second(100 + i), static_cast<uint64_t>(50 * i), i == 0);
  }
  for (int i = 0; i <= 12; ++i) {  // it counts from 0
    sampler.Add(Second(115 + i), static_cast<uint64_t>(40 * i), false);
  }
  EXPECT_THAT(sampler.points(),
              ElementsAre(Point{kRateTag, 500, 110, 50}, Point{kRateTag, 1'000, 125, 40}));
}

TEST(PointsTest, TheTimeBetweenRunsAndScalersIsNoRate) {
  RateSampler sampler;
  sampler.Add(Second(100), 1'000, true);
  sampler.Add(Second(110), 400, false);  // another scaler
  EXPECT_THAT(sampler.points(), ::testing::IsEmpty());
  sampler.Add(Second(115), 600, false);
  sampler.Add(Second(130), 800, true);
  sampler.Add(Second(135), 900, false);
  sampler.Add(Second(200), 5'000, false);  // no look for more than a minute
  EXPECT_THAT(sampler.points(), ::testing::IsEmpty());
  sampler.Add(Second(210), 5'100, false);
  EXPECT_EQ(sampler.points().back(), (Point{kRateTag, 6'700, 210, 10}));
}

TEST(PointsTest, OnlyWhatTheFileLacksIsMissing) {
  const std::vector<Point> points = {
      {"auc", 1, 5, 0.7},    {"auc", 2, 6, 0.8},     {"loss", 1, 5, 0.5},   {kRateTag, 10, 100, 1},
      {kRateTag, 7, 110, 1}, {kRateTag, 20, 120, 1}, {kRateTag, 20, 130, 1}};
  EXPECT_EQ(Missing(points, {}), points);
  EXPECT_THAT(Missing(points, {.writer = "", .points = points}), IsEmpty());
  const EventFile part{.writer = "", .points = {points[0], points[3], points[4]}};
  EXPECT_THAT(Missing(points, part), ElementsAre(points[1], points[2], points[5], points[6]));
  // The time of an epoch may be told otherwise the next time.
  EXPECT_THAT(Missing({{"auc", 1, 9, 0.7}}, part), IsEmpty());
}

}  // namespace
}  // namespace muster::metrics
