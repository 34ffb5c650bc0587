#include "ps/snapshot/image_codec.h"

#include <limits>

#include "base/random.h"
#include "tests/ps/snapshot/sample_image.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

using Entries = std::vector<std::pair<std::string, std::string>>;

const SnapshotIdentity kIdentity{PartitionId(3), OwnerEpoch(12),
                                 SnapshotNumber(MasterIncarnation(1), 5)};

Entries Encode(const PartitionImage& image) {
  Entries entries;
  EXPECT_THAT(EncodeImage(kIdentity, image,
                          [&](std::string_view key, std::string_view value) {
                            entries.emplace_back(key, value);
                            return absl::OkStatus();
                          }),
              IsOk());
  return entries;
}

absl::StatusOr<PartitionImage> Decode(const Entries& entries) {
  ImageDecoder decoder;
  for (const auto& [key, value] : entries) MUSTER_RETURN_IF_ERROR(decoder.Add(key, value));
  return decoder.Finish();
}

TEST(ImageCodecTest, AnImageComesBackAsItWasWithItsRowsSorted) {
  for (const SnapshotKind kind : {SnapshotKind::kBase, SnapshotKind::kDelta}) {
    const PartitionImage image = SampleImage(kind);
    const Entries entries = Encode(image);
    EXPECT_TRUE(std::ranges::is_sorted(entries, {}, [](const auto& entry) { return entry.first; }));
    MUSTER_ASSERT_OK_AND_ASSIGN(const PartitionImage decoded, Decode(entries));
    ExpectSameState(decoded, image);
    EXPECT_TRUE(std::ranges::is_sorted(decoded.rows[0].keys));
  }
}

/// Rows of 8 floats drawn at random, of which the last `repeats` are equal.
RowImage RowsWithRepeats(TableId table, uint64_t rows, uint32_t repeats) {
  Rng rng(table.value());
  RowImage image{table, 8, {}, {}};
  for (uint64_t key = 0; key < rows; ++key) {
    image.keys.push_back(key);
    for (uint32_t f = 0; f < 8; ++f) {
      image.rows.push_back(f < 8 - repeats ? static_cast<float>(rng.Uniform()) : 0.1f);
    }
  }
  return image;
}

TEST(ImageCodecTest, RepeatsAreSeenInRowsOfAllTablesByTheirShare) {
  PartitionImage image;
  EXPECT_FALSE(HasManyRepeats(image)) << "no rows";
  image.rows = {RowsWithRepeats(TableId(1), 1000, 0)};
  EXPECT_FALSE(HasManyRepeats(image));
  image.rows = {RowsWithRepeats(TableId(1), 1000, 2)};
  EXPECT_FALSE(HasManyRepeats(image)) << "one float in eight equals the one before";
  image.rows = {RowsWithRepeats(TableId(1), 1000, 3)};
  EXPECT_TRUE(HasManyRepeats(image)) << "two";
  image.rows = {RowsWithRepeats(TableId(1), 1, 3)};
  EXPECT_TRUE(HasManyRepeats(image)) << "a single row";
  image.rows = {RowsWithRepeats(TableId(1), 1000, 0), RowsWithRepeats(TableId(2), 100, 8)};
  EXPECT_FALSE(HasManyRepeats(image)) << "of few rows";
  image.rows = {RowsWithRepeats(TableId(1), 1000, 0), RowsWithRepeats(TableId(2), 1000, 8)};
  EXPECT_TRUE(HasManyRepeats(image));
}

TEST(ImageCodecTest, TheSinkCanStopIt) {
  EXPECT_THAT(EncodeImage(kIdentity, SampleImage(SnapshotKind::kBase),
                          [](std::string_view, std::string_view) {
                            return absl::ResourceExhaustedError("disk full");
                          }),
              StatusIs(absl::StatusCode::kResourceExhausted, "disk full"));
}

TEST(ImageCodecTest, EntriesThatDoNotFitAreRefused) {
  const Entries good = Encode(SampleImage(SnapshotKind::kBase));
  const auto refused = [&](Entries entries, const char* text) {
    EXPECT_THAT(Decode(entries), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(text)));
  };
  refused({}, "it is empty");
  refused(Entries(good.begin() + 1, good.end()), "does not begin with a snapshot's header");
  refused(Entries(good.begin(), good.end() - 1), "its header says 2 tables");
  Entries bad = good;
  bad[0].second[0] = 9;
  refused(bad, "it has format 9, but this program reads format 1");
  bad = good;
  bad[0].second.pop_back();
  refused(bad, "its header has 55 bytes, not 56");
  bad = good;
  bad.back().second.pop_back();
  refused(bad, "bytes, not");
  bad = good;
  bad[1].second = "\xff\xff\xff";
  refused(bad, "the definition of table 1 is not valid");
  bad = good;
  bad.erase(bad.begin() + 1);
  refused(bad, "rows of table 1, but does not define it");
  bad = good;
  bad[3].second.push_back('x');
  refused(bad, "the window of shard 0/1/2 has 9 bytes");
  bad = good;
  bad.emplace_back("\x07key", "");
  refused(bad, "unknown kind 7");
}

TEST(ImageCodecTest, DamagedEntriesNeverCrashTheDecoder) {
  const Entries good = Encode(SampleImage(SnapshotKind::kBase));
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    Entries bad = good;
    for (uint64_t i = 0; i <= rng.Below(3); ++i) {
      auto& [key, value] = bad[rng.Below(bad.size())];
      std::string& text = rng.Below(4) == 0 ? key : value;
      if (rng.Below(3) == 0) {
        text.resize(rng.Below(text.size() + 20), 'x');
      } else if (!text.empty()) {
        text[rng.Below(text.size())] ^= static_cast<char>(1 << rng.Below(8));
      }
    }
    if (const absl::StatusOr<PartitionImage> image = Decode(bad); image.ok()) {
      Partition partition(PartitionId(3), 7);
      // Whatever the answer: no crash.
      (void)partition.Restore(SnapshotNumber(), std::span(&*image, 1)).ok();
    }
  }
}

}  // namespace
}  // namespace muster::ps
