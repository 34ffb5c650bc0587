#include "master/service/snapshot_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class SnapshotFilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& name) {
    fs::create_directories(fs::path(folder_.File(name)).parent_path());
    ASSERT_THAT(WriteFileAtomically(folder_.File(name), "x"), testing::IsOk());
  }
  size_t Sweep(const std::set<std::string>& named, AttemptNumber newest = {}) {
    const auto store = OpenDirectoryStore(folder_.path());
    const auto orphans = OrphanSnapshots(store.get(), named, MasterIncarnation(7), newest);
    EXPECT_THAT(DeleteSnapshotFiles(store.get(), orphans).why, testing::IsOk());
    return orphans.size();
  }
  bool Exists(const std::string& name) const { return fs::exists(folder_.File(name)); }
  testing::TempDir folder_;
};

TEST_F(SnapshotFilesTest, DeletesByNameAndNeverOutsideTheFolder) {
  Write("snapshots/p00001/a.sst");
  Write("precious.sst");
  DeleteSnapshotFiles(OpenDirectoryStore(folder_.File("snapshots")).get(),
                      {"p00001/a.sst", "../precious.sst", folder_.File("precious.sst"), "absent"});
  EXPECT_FALSE(Exists("snapshots/p00001/a.sst"));
  EXPECT_TRUE(Exists("precious.sst"));
}

TEST_F(SnapshotFilesTest, OrphansAreWhatNoManifestNames) {
  for (const char* name :
       {"p00001/kept.sst", "p00001/orphan.sst", "p00002/half.sst.tmp-1",
        "p00001/e1-s6.9-base-0f.sst", "p00001/e1-s7.1-base-0f.sst", "p00001/e1-s8.1.tmp",
        "p00002/notes.txt", "photos/orphan.sst", "orphan.sst"}) {
    Write(name);
  }
  EXPECT_EQ(Sweep({"p00001/kept.sst"}), 3u);
  EXPECT_FALSE(Exists("p00001/e1-s6.9-base-0f.sst"));
  EXPECT_TRUE(Exists("p00001/e1-s7.1-base-0f.sst")) << "another master may have the incarnation";
  EXPECT_TRUE(Exists("p00001/e1-s8.1.tmp")) << "a newer master's server writes it";
  EXPECT_TRUE(Exists("p00001/kept.sst"));
  EXPECT_FALSE(Exists("p00001/orphan.sst"));
  EXPECT_FALSE(Exists("p00002/half.sst.tmp-1"));
  EXPECT_TRUE(Exists("p00002/notes.txt"));
  EXPECT_TRUE(Exists("photos/orphan.sst"));
  EXPECT_TRUE(Exists("orphan.sst"));
  EXPECT_THAT(
      OrphanSnapshots(OpenDirectoryStore(folder_.File("absent")).get(), {}, MasterIncarnation(7)),
      ::testing::IsEmpty());
}

TEST_F(SnapshotFilesTest, PiecesOfAGroupThatTheCheckpointDoesNotNameAreOrphans) {
  const std::string kept = "group/r1-s8-a2-c1-0", orphan = "group/r1-s9-a2-c2-0";
  for (const std::string& name : {kept, orphan, orphan + ".tmp", std::string("group/notes.txt"),
                                  std::string("group/r1-s9-a3-c0-0")}) {
    Write(name);
  }
  DurableState state;
  state.group.checkpoint = CheckpointRecord{{LineageNumber(1), StepNumber(8)},
                                            {{.stripe = 0, .bytes = 1, .crc = 0, .object = kept}}};
  const std::set<std::string> named = NamedSnapshots(state);
  const auto store = OpenDirectoryStore(folder_.path());
  EXPECT_THAT(*ListSnapshots(store.get()), ::testing::SizeIs(4));
  EXPECT_EQ(Sweep(named, AttemptNumber(2)), 2u);
  EXPECT_TRUE(Exists(kept));
  EXPECT_FALSE(Exists(orphan));
  EXPECT_TRUE(Exists("group/r1-s9-a3-c0-0")) << "a newer master may have asked for it";
  EXPECT_TRUE(Exists("group/notes.txt"));
}

}  // namespace
}  // namespace muster
