#include "ps/snapshot/snapshot.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/ps/snapshot/sample_image.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

constexpr PartitionId kPartition(3);
constexpr OwnerEpoch kEpoch(12);
SnapshotNumber Number(uint64_t count) {
  return {MasterIncarnation(1), count};
}

class SnapshotTest : public ::testing::Test {
 protected:
  absl::StatusOr<SnapshotFile> Write(uint64_t number, const PartitionImage& image) {
    return WriteSnapshot(store_.get(), kPartition, kEpoch, Number(number), image);
  }
  absl::StatusOr<std::vector<PartitionImage>> Read(std::vector<SnapshotFile> files) {
    return ReadChain(store_.get(), kPartition, Manifest{Number(9), DoneSeq(1), std::move(files)});
  }
  std::vector<std::string> FilesBelow() {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  TempDir dir_;
  const std::unique_ptr<ObjectStore> store_ = OpenDirectoryStore(dir_.path());
};

TEST_F(SnapshotTest, AChainComesBackBaseFirst) {
  const PartitionImage base = SampleImage(SnapshotKind::kBase);
  PartitionImage delta = SampleImage(SnapshotKind::kDelta);
  delta.rows.clear();
  delta.window.clear();
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile first, Write(1, base));
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile second, Write(2, delta));
  EXPECT_THAT(first.name, MatchesRegex("p00003/e12-s1.1-base-[0-9a-f]{16}.sst"));
  EXPECT_THAT(second.name, MatchesRegex("p00003/e12-s1.2-delta-[0-9a-f]{16}.sst"));
  EXPECT_EQ(FilesBelow().size(), 2u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<PartitionImage> images, Read({first, second}));
  ASSERT_EQ(images.size(), 2u);
  ExpectSameState(images[0], base);
  ExpectSameState(images[1], delta);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<PartitionImage> none, Read({}));
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(SnapshotTest, RowsOfZerosTakeLittleRoom) {
  PartitionImage image = SampleImage(SnapshotKind::kBase);
  image.rows.resize(1);
  for (uint64_t key = 0; key < 4; ++key) image.rows[0].keys[key] = key;
  for (uint64_t key = 4; key < 1000; ++key) image.rows[0].keys.push_back(key);
  image.rows[0].rows.assign(6 * 1000, 0.0f);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile zeros, Write(1, image));
  for (size_t i = 0; i < image.rows[0].rows.size(); ++i) {
    image.rows[0].rows[i] = static_cast<float>(i) * 0.37f;
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile others, Write(2, image));
  EXPECT_LT(2 * zeros.bytes, others.bytes);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<PartitionImage> images, Read({zeros}));
  EXPECT_EQ(images[0].rows[0].rows, std::vector<float>(6 * 1000, 0.0f));
}

TEST_F(SnapshotTest, AFileIsNeverReplacedByAnother) {
  PartitionImage image = SampleImage(SnapshotKind::kBase);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile first, Write(1, image));
  image.rows[0].rows[0] = 77;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile second, Write(1, image));
  EXPECT_NE(first.name, second.name);
  EXPECT_THAT(Read({first}), IsOk());
  EXPECT_THAT(Read({second}), IsOk());
}

TEST_F(SnapshotTest, MissingTruncatedAndExchangedFilesAreNamed) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile one, Write(1, SampleImage(SnapshotKind::kBase)));
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile two, Write(2, SampleImage(SnapshotKind::kBase)));
  const std::string path = dir_.File(one.name);
  EXPECT_THAT(Read({{"p00003/e1-s1.1-base.sst", 10}}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("p00003/e1-s1.1-base.sst: No such file"),
                             HasSubstr("put the file back"))));
  EXPECT_THAT(Read({{"../p00003/e12-s1.1-base.sst", one.bytes}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not below")));
  EXPECT_THAT(Read({{dir_.File(one.name), one.bytes}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not below")));
  EXPECT_THAT(ReadChain(store_.get(), PartitionId(4), Manifest{Number(1), DoneSeq(1), {one}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("contains partition 3")));
  fs::copy_file(dir_.File(two.name), path, fs::copy_options::overwrite_existing);
  EXPECT_THAT(Read({{one.name, two.bytes}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its checksum is not the one")));
  const std::string hash = two.name.substr(two.name.rfind('-'));
  const std::string renamed = "p00003/e12-s1.1-base" + hash;
  fs::copy_file(dir_.File(two.name), dir_.File(renamed));
  EXPECT_THAT(Read({{renamed, two.bytes}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("files were exchanged")));
  fs::resize_file(path, one.bytes - 1);
  EXPECT_THAT(Read({one}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("was truncated")));
}

TEST_F(SnapshotTest, AFlippedBitAnywhereIsFound) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const SnapshotFile file, Write(1, SampleImage(SnapshotKind::kBase)));
  const std::string path = dir_.File(file.name);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(path, 1 << 20));
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] ^= static_cast<char>(1 << (i % 8));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    ASSERT_THAT(Read({file}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(file.name)));
  }
}

TEST_F(SnapshotTest, AWriteThatFailsNamesThePathAndLeavesNothing) {
  PartitionImage image = SampleImage(SnapshotKind::kBase);
  Rng rng(1);
  for (uint64_t key = 1000; key < 60000; ++key) {
    image.rows[0].keys.push_back(key);
    for (int i = 0; i < 6; ++i) {
      image.rows[0].rows.push_back(static_cast<float>(rng.Uniform()));
    }
  }
  // A limit on the size of files stands for a full disk.
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  {
    absl::Cleanup restore = [&] {
      ::setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, signal_before);
    };
    const rlimit small{64 << 10, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::StatusOr<SnapshotFile> file = Write(1, image);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(std::string(Message(file.status())), HasSubstr("p00003/e12-s1.1"));
  }
  EXPECT_THAT(FilesBelow(), IsEmpty());
  EXPECT_THAT(Write(1, image), IsOk());
}

TEST_F(SnapshotTest, ADirectoryThatIsAFileIsExplained) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("p00003"), "x"), IsOk());
  const absl::StatusOr<SnapshotFile> file = Write(1, SampleImage(SnapshotKind::kBase));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(Message(file.status())), HasSubstr("p00003"));
}

}  // namespace
}  // namespace muster::ps
