#include "worker_sdk/core/shard_output.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "proto/exported/npy.h"

namespace muster::sdk {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(ShardOutputTest, BytesAreAppendedAsTheyAre) {
  ShardOutput output;
  EXPECT_FALSE(output.given());
  EXPECT_EQ(output.AddBytes("a\n"), std::nullopt);
  EXPECT_EQ(output.AddBytes("b"), std::nullopt);
  EXPECT_TRUE(output.given());
  EXPECT_EQ(*output.Object(), "a\nb");
  EXPECT_EQ(output.NameOf("new", ShardIndex(12)), "new-00000012.out");
}

TEST(ShardOutputTest, RowsAreOneArray) {
  ShardOutput output;
  EXPECT_EQ(output.AddRows(std::vector<float>{1, 2, 3, 4}, 2), std::nullopt);
  EXPECT_EQ(output.AddRows({}, 2), std::nullopt);
  EXPECT_EQ(output.AddRows(std::vector<float>{5, 6}, 2), std::nullopt);
  const std::string object = *output.Object();
  const auto array = DecodeNpy(object);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->header, (NpyHeader{"<f4", {3, 2}}));
  const float expected[] = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(std::memcmp(array->data.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(output.NameOf("new", ShardIndex(0)), "new-00000000.npy");
}

/// Joins with slashes.
ObjectFormat Joined(std::string suffix = ".joined") {
  return {std::move(suffix), [](std::span<const std::string_view> pieces) {
            return absl::StatusOr<std::string>(fmt::format("{}", fmt::join(pieces, "/")));
          }};
}

TEST(ShardOutputTest, PiecesAreJoinedByTheirFormat) {
  ShardOutput output;
  for (const char* piece : {"a", "", "bc"}) {
    EXPECT_EQ(output.AddPiece(piece, Joined()), std::nullopt);
  }
  EXPECT_THAT(output.AddPiece("d", Joined(".other")),
              Optional(HasSubstr("\".other\" came after \".joined\"")));
  EXPECT_THAT(output.AddBytes("d"), Optional(HasSubstr("of one kind")));
  EXPECT_EQ(*output.Object(), "a//bc");
  EXPECT_EQ(output.NameOf("new", ShardIndex(3)), "new-00000003.joined");
}

TEST(ShardOutputTest, AFormatHasASuffixAndAFunction) {
  ShardOutput output;
  for (const char* suffix : {"", ".", "parquet", ".Parquet", ".a.b", ".a/b", ".0123456789abcdef"}) {
    EXPECT_THAT(output.AddPiece("x", Joined(suffix)), Optional(HasSubstr("a format has a suffix")))
        << suffix;
  }
  EXPECT_THAT(output.AddPiece("x", {".joined", {}}), Optional(HasSubstr("a function")));
  EXPECT_FALSE(output.given());
}

TEST(ShardOutputTest, NothingIsAnOutputToo) {
  ShardOutput none, bytes, rows;
  EXPECT_FALSE(none.given());
  EXPECT_EQ(bytes.AddBytes(""), std::nullopt);
  EXPECT_TRUE(bytes.given());
  EXPECT_EQ(*bytes.Object(), "");
  EXPECT_EQ(rows.AddRows({}, 3), std::nullopt);
  EXPECT_EQ(DecodeNpy(*rows.Object())->header, (NpyHeader{"<f4", {0, 3}}));
}

TEST(ShardOutputTest, WhatDoesNotFitIsRefusedAndLeavesNothingBehind) {
  ShardOutput output;
  EXPECT_THAT(output.AddRows(std::vector<float>(3), 2),
              Optional(HasSubstr("3 numbers are no rows of 2")));
  EXPECT_THAT(output.AddRows(std::vector<float>(3), 0), Optional(HasSubstr("no rows of 0")));
  EXPECT_FALSE(output.given());
  EXPECT_EQ(output.AddRows(std::vector<float>(4), 2), std::nullopt);
  EXPECT_THAT(output.AddRows(std::vector<float>(3), 3),
              Optional(HasSubstr("3 columns came after rows of 2")));
  EXPECT_THAT(output.AddBytes("x"), Optional(HasSubstr("of one kind")));
  EXPECT_THAT(output.AddPiece("x", Joined()), Optional(HasSubstr("of one kind")));
  EXPECT_EQ(DecodeNpy(*output.Object())->header, (NpyHeader{"<f4", {2, 2}}));
}

TEST(ShardOutputTest, TheOutputsOfAShardAreBounded) {
  ShardOutput output;
  const std::string half(ShardOutput::kBytesMax / 2, 'x');
  EXPECT_EQ(output.AddBytes(half), std::nullopt);
  EXPECT_EQ(output.AddBytes(half), std::nullopt);
  EXPECT_THAT(output.AddBytes("x"), Optional(HasSubstr("more than 256 MiB")));
}

}  // namespace
}  // namespace muster::sdk
