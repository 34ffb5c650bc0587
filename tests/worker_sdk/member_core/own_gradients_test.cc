#include "worker_sdk/member_core/own_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/words/number_bits.h"
#include "tests/support/status_matchers.h"
#include "worker_sdk/member_core/gradient_kernels.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr StepRunNumber kRun = 5;

std::vector<GroupTensor> Tensors(size_t elements) {
  return {{"weights", GroupDtype::kFloat32, elements, false, 0},
          {"fixed", GroupDtype::kFixedPoint, elements, true, 24},
          {"float", GroupDtype::kFloat32, elements, true, 0},
          {"half", GroupDtype::kBfloat16, elements, true, 0}};
}
OwnGradients Sums(size_t elements) {
  OwnGradients sums = *OwnGradients::Create(Tensors(elements));
  sums.Begin(kRun);
  return sums;
}
IntervalSet Share(uint32_t first, uint32_t count) {
  return MinibatchesOf(std::vector<MinibatchSpan>{{MinibatchIndex(first), count}});
}
/// Adds a minibatch to a bucket on a device.
absl::StatusOr<std::optional<SumMode>> Elsewhere(OwnGradients* sums, StepRunNumber run,
                                                 MinibatchIndex minibatch, uint32_t bucket,
                                                 uint64_t elements) {
  const auto mode = sums->BeginAdd(run, minibatch, bucket, elements, /*elsewhere=*/true);
  if (mode.ok() && mode->has_value()) sums->EndAdd(run, minibatch, bucket, /*good=*/true);
  return mode;
}
std::vector<float> Decoded(OwnGradients* sums, uint32_t bucket) {
  std::vector<float> out(sums->tensor(bucket).elements);
  EXPECT_THAT(sums->Decode(bucket, *sums->Encoded(bucket), out), IsOk());
  return out;
}

TEST(OwnGradientsTest, ABucketThatIsTooLargeForTheMemoryIsAnError) {
  for (const GroupDtype dtype : {GroupDtype::kFixedPoint, GroupDtype::kBfloat16}) {
    const std::vector<GroupTensor> huge{{"huge", dtype, uint64_t{1} << 61, true, 0}};
    EXPECT_THAT(OwnGradients::Create(huge),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("the bucket \"huge\" of 2305843009213693952 elements: there is "
                                   "not enough memory for its gradients")));
  }
}

TEST(OwnGradientsTest, ErrorsNameWhatTheBucketHas) {
  OwnGradients sums = Sums(2);
  for (const uint32_t bucket : {0u, 1u, 2u}) {
    sums.SetGiving(bucket, OwnGradients::Giving::kWhole);
  }
  sums.End(kRun, MinibatchIndex(0));
  for (const uint32_t bucket : {0u, 1u, 2u}) {
    const float wrong[] = {1, std::nanf("")};
    EXPECT_THAT(sums.Put(kRun, bucket, wrong, "the change of \"w\""),
                StatusIs(absl::StatusCode::kOutOfRange,
                         HasSubstr("the change of \"w\", element 1, is nan")));
  }
  const float large[] = {1, 3.4e38F};
  sums.End(kRun, MinibatchIndex(1));
  EXPECT_THAT(sums.Put(kRun, 2, large, "the change of \"w\""), IsOk());
  EXPECT_THAT(sums.Encoded(2).status(),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the change of \"w\", element 1")));
}

TEST(OwnGradientsTest, OnlySummedTensorsAreBuckets) {
  OwnGradients sums = Sums(2);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums.tensor(0).name, "fixed");
  EXPECT_EQ((*sums.blocks())[0].bytes(), 16u);
  EXPECT_EQ((*sums.blocks())[1].bytes(), 8u);
  EXPECT_EQ((*sums.blocks())[2].bytes(), 4u);
  std::vector<GroupTensor> wrong{{"b", GroupDtype::kInt64, 2, true, 0}};
  EXPECT_THAT(OwnGradients::Create(wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
  std::vector<GroupTensor> none{{"b", GroupDtype::kFloat32, 0, true, 0}};
  EXPECT_THAT(OwnGradients::Create(none),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
}

TEST(OwnGradientsTest, AddsTheMinibatchesOfEveryType) {
  OwnGradients sums = Sums(3);
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), bucket, std::vector<float>{1, -2, 0.5f}), IsOk());
    ASSERT_THAT(sums.Add(kRun, MinibatchIndex(1), bucket, std::vector<float>{2, 4, 0.25f}), IsOk());
    EXPECT_THAT(Decoded(&sums, bucket), ElementsAre(3, 2, 0.75f));
  }
}

TEST(OwnGradientsTest, OfABucketElsewhereItKnowsTheMinibatches) {
  const uint32_t elsewhere[] = {1};
  OwnGradients sums = *OwnGradients::Create(Tensors(3), elsewhere);
  for (const StepRunNumber run : {kRun, kRun + 1}) {
    sums.Begin(run);
    EXPECT_TRUE(sums.zero(1));
    EXPECT_EQ(*Elsewhere(&sums, run, MinibatchIndex(0), 1, 3), SumMode::kStore);
    EXPECT_FALSE(sums.zero(1));
    EXPECT_EQ(*Elsewhere(&sums, run, MinibatchIndex(1), 1, 3), SumMode::kAdd);
    EXPECT_EQ(*Elsewhere(&sums, run + 1, MinibatchIndex(2), 1, 3), std::nullopt);
    EXPECT_TRUE(sums.Complete(run, 1, Share(0, 2)));
    EXPECT_EQ(sums.BucketElsewhere(1), 1u);
    EXPECT_EQ(sums.BucketElsewhere(0), std::nullopt);
  }
  sums.MarkBad(kRun, 1);  // of another run
  EXPECT_TRUE(sums.Complete(kRun + 1, 1, Share(0, 2)));
  sums.MarkBad(kRun + 1, 1);
  EXPECT_FALSE(sums.Complete(kRun + 1, 1, Share(0, 2)));
}

TEST(OwnGradientsTest, WhereABucketIsCannotBeMixed) {
  const uint32_t elsewhere[] = {1};
  OwnGradients sums = *OwnGradients::Create(Tensors(2), elsewhere);
  sums.Begin(kRun);
  const std::vector<float> gradient(2);
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, gradient),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"float\" is on the device: use GroupStep::AddDevice")));
  EXPECT_THAT(Elsewhere(&sums, kRun, MinibatchIndex(0), 0, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"fixed\" is in the memory of the process")));
  EXPECT_THAT(
      Elsewhere(&sums, kRun, MinibatchIndex(0), 1, 3),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 3 elements, the bucket has 2")));
  ASSERT_THAT(Elsewhere(&sums, kRun, MinibatchIndex(0), 1, 2), IsOk());
  EXPECT_THAT(Elsewhere(&sums, kRun, MinibatchIndex(0), 1, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice for minibatch 0")));
}

TEST(OwnGradientsTest, ABucketIsNotCompleteWhileItIsWritten) {
  OwnGradients sums = Sums(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::optional<SumMode> mode,
                              sums.BeginAdd(kRun, MinibatchIndex(0), 1, 1, false));
  EXPECT_EQ(mode, SumMode::kStore);
  EXPECT_TRUE(sums.writing());
  EXPECT_FALSE(sums.Complete(kRun, 1, Share(0, 1)));
  EXPECT_THAT(sums.BeginAdd(kRun, MinibatchIndex(0), 1, 1, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice for minibatch 0")));
  EXPECT_THAT(sums.Write(1, std::vector<float>{3}, *mode), IsOk());
  sums.EndAdd(kRun, MinibatchIndex(0), 1, true);
  EXPECT_FALSE(sums.writing());
  EXPECT_TRUE(sums.Complete(kRun, 1, Share(0, 1)));
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(3));
}

TEST(OwnGradientsTest, ABucketIsCompleteWithExactlyTheShare) {
  OwnGradients sums = Sums(1);
  EXPECT_TRUE(sums.Complete(kRun, 0, Share(0, 0)));
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(0));
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(3), 0, std::vector<float>{1}), IsOk());
  EXPECT_TRUE(sums.Complete(kRun, 0, Share(3, 1)));
  EXPECT_FALSE(sums.Complete(kRun, 0, Share(3, 2)));
  EXPECT_FALSE(sums.Complete(kRun, 0, Share(0, 0)));
  EXPECT_FALSE(sums.Complete(kRun, 1, Share(3, 1)));
  EXPECT_FALSE(sums.Complete(kRun + 1, 0, Share(3, 1)));
  EXPECT_FALSE(sums.Complete(kRun, 9, Share(3, 1)));
  // The loop has left the minibatch, and added nothing to the others.
  sums.End(kRun, MinibatchIndex(3));
  EXPECT_TRUE(sums.Complete(kRun, 1, Share(3, 1)));
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(1));
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(0));
}

TEST(OwnGradientsTest, GradientsStayInTheRunAndGoWithIt) {
  OwnGradients sums = Sums(1);
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), bucket, std::vector<float>{1}), IsOk());
  }
  sums.Begin(kRun);  // another attempt, which gives it a minibatch more
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(1), 0, std::vector<float>{1}), IsOk());
  EXPECT_TRUE(sums.Complete(kRun, 0, Share(0, 2)));
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(2));
  sums.Begin(kRun + 1);
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(2), 0, std::vector<float>{1}), IsOk());
  sums.End(kRun, MinibatchIndex(2));
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    EXPECT_TRUE(sums.Complete(kRun + 1, bucket, Share(0, 0)));
    EXPECT_THAT(Decoded(&sums, bucket), ElementsAre(0));
  }
  ASSERT_THAT(sums.Add(kRun + 1, MinibatchIndex(0), 0, std::vector<float>{4}), IsOk());
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(4));
}

TEST(OwnGradientsTest, SumsThatAreGivenAfterTheLoopsAreAdded) {
  OwnGradients sums = Sums(1);
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    sums.SetGiving(bucket, OwnGradients::Giving::kAfterLoop);
  }
  sums.End(kRun, MinibatchIndex(0));
  EXPECT_THAT(sums.CheckPut(kRun),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fixed")));
  EXPECT_THAT(sums.CheckPut(kRun + 1), IsOk()) << "it is dropped";
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    EXPECT_FALSE(sums.Complete(kRun, bucket, Share(0, 1)));
    EXPECT_THAT(sums.Put(kRun, bucket, std::vector{3.0F}), IsOk());
    EXPECT_TRUE(sums.Complete(kRun, bucket, Share(0, 1)));
  }
  EXPECT_THAT(sums.CheckPut(kRun), IsOk());
  sums.End(kRun, MinibatchIndex(1));
  EXPECT_THAT(sums.CheckPut(kRun),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fixed")));
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    EXPECT_THAT(sums.Put(kRun, bucket, std::vector{4.0F}), IsOk());
    EXPECT_TRUE(sums.Complete(kRun, bucket, Share(0, 2)));
    EXPECT_THAT(sums.Put(kRun, bucket, std::vector{4.0F}), IsOk()) << "of no minibatch";
    EXPECT_THAT(Decoded(&sums, bucket), ElementsAre(7)) << bucket;
  }
  sums.Begin(kRun + 1);
  sums.End(kRun + 1, MinibatchIndex(0));
  EXPECT_THAT(sums.Put(kRun + 1, 1, std::vector{5.0F}), IsOk());
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(5)) << "a new run begins with zeros";
  EXPECT_THAT(sums.Add(kRun + 1, MinibatchIndex(0), 1, std::vector{5.0F}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("GroupStep::Put")));
}

TEST(OwnGradientsTest, AWholeBucketIsCompleteWithWhatIsPut) {
  OwnGradients sums = *OwnGradients::Create(Tensors(2));
  for (uint32_t bucket = 0; bucket < 3; ++bucket)
    sums.SetGiving(bucket, OwnGradients::Giving::kWhole);
  sums.Begin(kRun);
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    EXPECT_TRUE(sums.Complete(kRun, bucket, {}));  // a member without minibatches
  }
  sums.End(kRun, MinibatchIndex(4));
  sums.End(kRun, MinibatchIndex(5));
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    EXPECT_FALSE(sums.Complete(kRun, bucket, Share(4, 2)));
    EXPECT_THAT(sums.Put(kRun, bucket, std::vector<float>{1.5F, -2}), IsOk());
    EXPECT_TRUE(sums.Complete(kRun, bucket, Share(4, 2)));
    EXPECT_THAT(Decoded(&sums, bucket), ElementsAre(1.5F, -2));
  }
  // The share grows: what is put then replaces what was there.
  sums.End(kRun, MinibatchIndex(6));
  EXPECT_FALSE(sums.Complete(kRun, 1, Share(4, 3)));
  EXPECT_THAT(sums.Put(kRun, 1, std::vector<float>{4, 8}), IsOk());
  EXPECT_TRUE(sums.Complete(kRun, 1, Share(4, 3)));
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(4, 8));
  EXPECT_THAT(sums.Put(kRun + 1, 1, std::vector<float>{9, 9}), IsOk());
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(4, 8));

  EXPECT_THAT(sums.Put(kRun, 1, std::vector<float>{4}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 1 elements")));
  // Without another minibatch, nothing is written: the values may be in use.
  EXPECT_THAT(sums.Put(kRun, 1, std::vector<float>{7, 7}), IsOk());
  EXPECT_THAT(Decoded(&sums, 1), ElementsAre(4, 8));
  EXPECT_TRUE(sums.Complete(kRun, 1, Share(4, 3)));
  sums.End(kRun, MinibatchIndex(7));
  EXPECT_THAT(sums.Put(kRun, 1, std::vector<float>{4, std::nanf("")}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"float\", element 1")));
  EXPECT_FALSE(sums.Complete(kRun, 1, Share(4, 4)));
  sums.Begin(kRun + 1);
  EXPECT_FALSE(sums.Complete(kRun + 1, 0, Share(4, 2)));
  sums.End(kRun + 1, MinibatchIndex(7));
  EXPECT_THAT(sums.Put(kRun + 1, 1, std::vector<float>{1, 1}), IsOk());
  EXPECT_TRUE(sums.Complete(kRun + 1, 1, Share(7, 1)));
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(0, 0));
}

TEST(OwnGradientsTest, CallsThatCannotWork) {
  OwnGradients sums = Sums(2);
  const std::vector<float> good{1, 2};
  auto invalid = [](std::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text)));
  };
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(0), 3, good), invalid("no bucket 3"));
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, std::vector<float>{1}),
              invalid("\"float\" has 1 elements, the bucket has 2"));
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, good), IsOk());
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, good), invalid("twice for minibatch 0"));
  std::vector<float> out(2);
  EXPECT_THAT(sums.Decode(0, std::vector<std::byte>(15), out), invalid("15 bytes"));
  EXPECT_THAT(sums.Decode(0, std::vector<std::byte>(16), std::span(out).first(1)), invalid(""));
}

TEST(OwnGradientsTest, WhatIsNoNumberOrTooLargeIsNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (uint32_t bucket = 0; bucket < 3; ++bucket) {
    for (float wrong : {nan, infinity, -infinity}) {
      OwnGradients sums = Sums(50);
      std::vector<float> gradient(50, 1);
      gradient[33] = wrong;
      absl::Status status = sums.Add(kRun, MinibatchIndex(0), bucket, gradient);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange,
                                   HasSubstr("\"" + sums.tensor(bucket).name + "\", element 33")));
      EXPECT_FALSE(sums.Complete(kRun, bucket, Share(0, 1)));
      sums.Begin(kRun + 1);
      EXPECT_TRUE(sums.Complete(kRun + 1, bucket, Share(0, 0)));
    }
  }
}

TEST(OwnGradientsTest, TheLargestNumbers) {
  const auto limit = static_cast<float>(std::ldexp(kFixedPointLimit, -24));
  const float largest = std::nextafter(limit, 0.0f);
  OwnGradients sums = Sums(1);
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 0, std::vector<float>{-largest}), IsOk());
  EXPECT_THAT(Decoded(&sums, 0), ElementsAre(-largest));
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(1), 0, std::vector<float>{limit}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("")));
  // The sum of as many of them as a step may have is in int64.
  static_assert(kFixedPointLimit * kFixedPointMinibatchesMax <= 0x1p63);

  const float max = std::numeric_limits<float>::max();
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, std::vector<float>{max}), IsOk());
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(1), 1, std::vector<float>{max}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("element 0")));
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 2, std::vector<float>{max}), IsOk());
  EXPECT_THAT(sums.Encoded(2).status(),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"half\", element 0")));
}

TEST(OwnGradientsTest, ASumOfAllThatIsNoNumberIsNamed) {
  OwnGradients sums = Sums(2);
  const std::vector<float> sum{1, std::numeric_limits<float>::infinity()};
  std::vector<float> out(2);
  EXPECT_THAT(sums.Decode(1, std::as_bytes(std::span(sum)), out),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"float\", element 1")));
}

/// A block of three fixed-point buckets, and one of two bfloat16 ones, between each other.
OwnGradients TwoBlocks() {
  const std::vector<GroupTensor> tensors{{"a", GroupDtype::kFixedPoint, 2, true, 24},
                                         {"p", GroupDtype::kBfloat16, 3, true, 0},
                                         {"b", GroupDtype::kFixedPoint, 1, true, 24},
                                         {"q", GroupDtype::kBfloat16, 1, true, 0},
                                         {"c", GroupDtype::kFixedPoint, 2, true, 24}};
  OwnGradients sums = *OwnGradients::Create(tensors);
  sums.Begin(kRun);
  return sums;
}
constexpr uint32_t kHalves = 0, kFixed = 1;  // blocks
std::vector<float> DecodedBlock(OwnGradients* sums, uint32_t block) {
  std::vector<float> out((*sums->blocks())[block].elements);
  EXPECT_THAT(sums->Decode(block, *sums->Encoded(block), out), IsOk());
  return out;
}

TEST(OwnGradientsTest, TheBucketsOfABlockLieOneAfterTheOther) {
  OwnGradients sums = TwoBlocks();
  ASSERT_EQ(sums.blocks()->size(), 2u);
  for (const StepRunNumber run : {kRun, kRun + 1}) {
    sums.Begin(run);
    const float scale = run == kRun ? 1 : 2;
    ASSERT_THAT(sums.Add(run, MinibatchIndex(0), 4, std::vector{5 * scale, 6.0F}), IsOk());
    ASSERT_THAT(sums.Add(run, MinibatchIndex(0), 0, std::vector{1 * scale, 2.0F}), IsOk());
    ASSERT_THAT(sums.Add(run, MinibatchIndex(1), 0, std::vector{1 * scale, 2.0F}), IsOk());
    ASSERT_THAT(sums.Add(run, MinibatchIndex(0), 1, std::vector<float>{7, 8, 9 * scale}), IsOk());
    // "b" and "q" have got nothing yet in this run.
    EXPECT_THAT(DecodedBlock(&sums, kFixed), ElementsAre(2 * scale, 4, 0, 5 * scale, 6));
    EXPECT_THAT(DecodedBlock(&sums, kHalves), ElementsAre(7, 8, 9 * scale, 0));
    ASSERT_THAT(sums.Add(run, MinibatchIndex(1), 2, std::vector{3 * scale}), IsOk());
    ASSERT_THAT(sums.Add(run, MinibatchIndex(1), 3, std::vector{4 * scale}), IsOk());
    EXPECT_THAT(DecodedBlock(&sums, kFixed), ElementsAre(2 * scale, 4, 3 * scale, 5 * scale, 6));
    EXPECT_THAT(DecodedBlock(&sums, kHalves), ElementsAre(7, 8, 9 * scale, 4 * scale));
  }
}

TEST(OwnGradientsTest, ABlockIsCompleteWhenAllItsBucketsAre) {
  // Whatever the order in which they become complete, and whenever somebody asks.
  std::vector<uint32_t> order{0, 2, 4};
  do {
    for (int asked = 0; asked < 8; ++asked) {
      OwnGradients sums = TwoBlocks();
      for (size_t i = 0; i < order.size(); ++i) {
        const bool asks = (asked >> i & 1) != 0;
        EXPECT_FALSE(asks && sums.Complete(kRun, kFixed, Share(0, 1)));
        const std::vector<float> gradient(sums.tensor(order[i]).elements, 1);
        ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), order[i], gradient), IsOk());
      }
      EXPECT_TRUE(sums.Complete(kRun, kFixed, Share(0, 1)));
      EXPECT_TRUE(sums.Complete(kRun, kFixed, Share(0, 1))) << "when it is asked again";
      EXPECT_FALSE(sums.Complete(kRun, kFixed, Share(0, 2))) << "the share has grown";
      EXPECT_FALSE(sums.Complete(kRun, kHalves, Share(0, 1)));
      sums.End(kRun, MinibatchIndex(0));
      EXPECT_TRUE(sums.Complete(kRun, kHalves, Share(0, 1)));
      sums.End(kRun, MinibatchIndex(1));
      EXPECT_TRUE(sums.Complete(kRun, kFixed, Share(0, 2)));
      EXPECT_FALSE(sums.Complete(kRun, kFixed, Share(0, 1)));
      sums.MarkBad(kRun, order[1]);
      EXPECT_FALSE(sums.Complete(kRun, kFixed, Share(0, 2)));
      sums.Begin(kRun + 1);
      EXPECT_FALSE(sums.Complete(kRun + 1, kFixed, Share(0, 1)));
      EXPECT_TRUE(sums.Complete(kRun + 1, kFixed, {}));
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(OwnGradientsTest, WhatIsWrongInABlockIsNamedByItsBucket) {
  OwnGradients sums = TwoBlocks();
  const float max = std::numeric_limits<float>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(sums.Add(kRun, MinibatchIndex(0), 4, std::vector{1.0F, nan}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"c\", element 1")));
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 1, std::vector<float>{1, 1, 1}), IsOk());
  ASSERT_THAT(sums.Add(kRun, MinibatchIndex(0), 3, std::vector{max}), IsOk());
  EXPECT_THAT(sums.Encoded(kHalves).status(),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"q\", element 0")));
  const std::vector<uint16_t> sum{0, 0, 0x7f80, 0};  // infinity
  std::vector<float> out(4);
  EXPECT_THAT(sums.Decode(kHalves, std::as_bytes(std::span(sum)), out),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("\"p\", element 2")));
}

/// Who computes a minibatch, and when, makes no difference to the bits of a fixed-point sum.
TEST(OwnGradientsTest, FixedPointDoesNotDependOnTheOrder) {
  constexpr size_t kElements = 37;
  constexpr uint32_t kMinibatches = 12;
  Rng rng(3);
  std::vector<std::vector<float>> gradients(kMinibatches, std::vector<float>(kElements));
  for (auto& gradient : gradients) {
    for (float& value : gradient) {
      value = static_cast<float>((rng.Uniform() - 0.5) * std::pow(10, 6 - 12 * rng.Uniform()));
    }
  }
  std::vector<uint32_t> order(kMinibatches);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<int64_t> expected;
  for (int round = 0; round < 20; ++round) {
    for (uint32_t i = kMinibatches - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
    // Divided among two members.
    size_t first = rng.Below(kMinibatches + 1);
    OwnGradients members[2] = {Sums(kElements), Sums(kElements)};
    for (size_t i = 0; i < kMinibatches; ++i) {
      OwnGradients& member = members[i < first ? 0 : 1];
      ASSERT_THAT(member.Add(kRun, MinibatchIndex(order[i]), 0, gradients[order[i]]), IsOk());
    }
    std::vector<int64_t> sum(kElements, 0);
    for (OwnGradients& member : members) {
      std::span<const std::byte> bytes = *member.Encoded(0);
      std::vector<int64_t> part(kElements);
      std::memcpy(part.data(), bytes.data(), bytes.size());
      for (size_t i = 0; i < kElements; ++i) sum[i] += part[i];
    }
    if (round == 0) expected = sum;
    ASSERT_EQ(sum, expected);
  }
  for (size_t i = 0; i < kElements; ++i) {
    double exact = 0;
    for (const auto& gradient : gradients) exact += static_cast<double>(gradient[i]);
    EXPECT_NEAR(std::ldexp(static_cast<double>(expected[i]), -24), exact, kMinibatches * 0x1p-25);
  }
}

TEST(SumKernelsTest, RoundsToTheNearestAndTiesToEven) {
  std::vector<int64_t> fixed(6);
  const std::vector<float> values{0.5f, 1.5f, -0.5f, -2.5f, 2.25f, -2.75f};
  EXPECT_EQ(AddFixedPoint(values, 0, SumMode::kStore, fixed), kNoElement);
  EXPECT_THAT(fixed, ElementsAre(0, 2, 0, -2, 2, -3));
  std::vector<uint16_t> halves(3);
  const std::vector<float> floats{1.0f, 0x1.01p0f, 0x1.03p0f};
  EXPECT_EQ(ToBfloat16(floats, halves), kNoElement);
  std::vector<float> back(3);
  Bfloat16ToFloat(halves, back);
  EXPECT_THAT(back, ElementsAre(1.0f, 1.0f, 0x1.04p0f));
}

TEST(SumKernelsTest, FixedPointToFloatIsACast) {
  const int64_t max = std::numeric_limits<int64_t>::max(),
                min = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> fixed{0, 1, -1, 0xffffffff, -0x100000000, 0x7fffffffffff, max, min, min + 1};
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    fixed.push_back(static_cast<int64_t>(rng.Next()) >> rng.Below(64));
  }
  std::vector<float> floats(fixed.size());
  FixedPointToFloat(fixed, 24, floats);
  for (size_t i = 0; i < fixed.size(); ++i) {
    double expected = std::ldexp(static_cast<double>(fixed[i]), -24);
    ASSERT_EQ(floats[i], static_cast<float>(expected)) << fixed[i];
  }
}

}  // namespace
}  // namespace muster::sdk
