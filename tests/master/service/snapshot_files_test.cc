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
  EXPECT_EQ(DeleteOrphanSnapshots(OpenDirectoryStore(folder_.path()).get(), {"p00001/kept.sst"},
                                  MasterIncarnation(7)),
            3u);
  EXPECT_FALSE(Exists("p00001/e1-s6.9-base-0f.sst"));
  EXPECT_TRUE(Exists("p00001/e1-s7.1-base-0f.sst")) << "another master may have the incarnation";
  EXPECT_TRUE(Exists("p00001/e1-s8.1.tmp")) << "a newer master's server writes it";
  EXPECT_TRUE(Exists("p00001/kept.sst"));
  EXPECT_FALSE(Exists("p00001/orphan.sst"));
  EXPECT_FALSE(Exists("p00002/half.sst.tmp-1"));
  EXPECT_TRUE(Exists("p00002/notes.txt"));
  EXPECT_TRUE(Exists("photos/orphan.sst"));
  EXPECT_TRUE(Exists("orphan.sst"));
  EXPECT_EQ(DeleteOrphanSnapshots(OpenDirectoryStore(folder_.File("absent")).get(), {},
                                  MasterIncarnation(7)),
            0u);
}

}  // namespace
}  // namespace muster
