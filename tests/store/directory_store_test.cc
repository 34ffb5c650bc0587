#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/file_observer.h"
#include "store/local_file.h"
#include "store/object_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

class DirectoryStoreTest : public ::testing::Test {
 protected:
  absl::StatusOr<LocalFile> Stage(const std::string& label, std::string_view bytes) {
    auto staged = store_->Stage(label);
    if (staged.ok()) {
      EXPECT_THAT(WriteFileAtomically(staged->path(), bytes), IsOk());
    }
    return staged;
  }
  std::vector<std::string> List(const std::string& prefix = "") { return *store_->List(prefix); }

  testing::TempDir folder_;
  const std::unique_ptr<ObjectStore> store_ = *OpenStore(folder_.File("store"));
};

TEST_F(DirectoryStoreTest, ObjectsComeBackAreListedAndDeleted) {
  EXPECT_THAT(List(), IsEmpty()) << "the folder does not exist";
  ASSERT_THAT(store_->Publish(*Stage("p1/a.tmp", "one"), "p1/a.sst"), IsOk());
  ASSERT_THAT(store_->Publish(*Stage("p2/b.tmp", "two"), "p2/b.sst"), IsOk());
  ASSERT_THAT(store_->PutNew("OWNER", "me"), IsOk());
  EXPECT_THAT(List(), ElementsAre("OWNER", "p1/a.sst", "p2/b.sst"));
  EXPECT_THAT(List("p1/"), ElementsAre("p1/a.sst"));
  EXPECT_EQ(*ReadFile(store_->Fetch("p1/a.sst")->path(), 10), "one");
  EXPECT_THAT(List("p1/"), ElementsAre("p1/a.sst")) << "reading removes nothing";
  EXPECT_THAT(store_->Get("p1/a.sst", 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  EXPECT_THAT(store_->Delete("p1/a.sst"), IsOk());
  EXPECT_THAT(store_->Delete("p1/a.sst"), IsOk()) << "again";
  EXPECT_THAT(store_->Get("p1/a.sst", 10),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("p1/a.sst")));
  EXPECT_THAT(List(), ElementsAre("OWNER", "p2/b.sst"));
}

TEST_F(DirectoryStoreTest, WhatIsNotPublishedIsRemoved) {
  {
    const auto staged = Stage("p1/a.tmp", "one");
    EXPECT_THAT(List(), ElementsAre("p1/a.tmp")) << "as a crash leaves it";
  }
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(DirectoryStoreTest, TheFirstOfTwoNewObjectsStays) {
  EXPECT_THAT(store_->PutNew("OWNER", "one"), IsOk());
  EXPECT_THAT(store_->PutNew("OWNER", "two"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("OWNER")));
  EXPECT_EQ(*store_->Get("OWNER", 10), "one");
  EXPECT_THAT(List(), ElementsAre("OWNER"));
}

TEST_F(DirectoryStoreTest, WhatIsOnTheWayToANewObjectIsNamedByItAndDeleted) {
  ASSERT_THAT(store_->PutNew("OWNER", "one"), IsOk());
  std::vector<std::string> kept = {"OWNER",
                                   "a.tmp",
                                   "a.tmp.7",
                                   "a.0123",
                                   "a.0123456789abcdeg",
                                   "a.0123456789abcdef0",
                                   ".0123456789abcdef"};
  for (const std::string& name : kept) {
    ASSERT_THAT(WriteFileAtomically(store_->Shown(name), "x"), IsOk());
  }
  for (const char* name :
       {"a.0123456789abcdef", "b.0123456789abcdef.tmp.77", "busy.0000000000000001"}) {
    ASSERT_THAT(WriteFileAtomically(store_->Shown(name), "x"), IsOk());
  }
  std::vector<std::string> asked;
  EXPECT_EQ(*store_->DeleteUnfinished([&](const std::string& object) {
    asked.push_back(object);
    return object != "busy";
  }),
            2u);
  EXPECT_THAT(asked, ElementsAre("a", "b", "busy"));
  kept.push_back("busy.0000000000000001");
  EXPECT_THAT(List(), ::testing::UnorderedElementsAreArray(kept));
}

#if MUSTER_WITH_FAILPOINTS
/// Another writer makes the object at the last moment, and dies before it syncs the folder.
class FasterWriter final : public FileObserver {
 public:
  FasterWriter() { ObserveFiles(this); }
  ~FasterWriter() override { ObserveFiles(nullptr); }
  void Create(const std::string&) override {}
  void Write(const std::string&, uint64_t, std::string_view) override {}
  void Rename(const std::string&, const std::string&) override {}
  void Remove(const std::string&) override {}
  void MakeFolder(const std::string&) override {}
  void Link(const std::string& from, const std::string& to) override {
    made = ::link(from.c_str(), to.c_str()) == 0;
  }
  void Sync(const std::string& path) override { durable |= made && fs::is_directory(path); }

  bool made = false, durable = false;
};

TEST_F(DirectoryStoreTest, AnObjectOfAFasterWriterIsDurableToo) {
  FasterWriter other;
  EXPECT_THAT(store_->PutNew("new", "bytes"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("new")));
  EXPECT_TRUE(other.made);
  EXPECT_TRUE(other.durable);
}

TEST_F(DirectoryStoreTest, WhatAKilledPutNewLeavesIsFound) {
  // The name that it really has, before and after the bytes are complete.
  for (const char* step : {"file.before-write", "owner.before-link"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)ArmFailpoints({.actions = std::string(step) + "=crash"});
      (void)store_->PutNew("new", "bytes");
      ::_exit(0);
    }
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    ASSERT_TRUE(WIFSIGNALED(state));
    ASSERT_EQ(List().size(), 1u);
    EXPECT_EQ(*store_->DeleteUnfinished([](const std::string& name) { return name == "new"; }), 1u);
    EXPECT_THAT(List(), IsEmpty());
  }
}
#endif

TEST_F(DirectoryStoreTest, ACheckLeavesNoObject) {
  EXPECT_THAT(store_->CheckWritable(), IsOk());
  EXPECT_THAT(List(), IsEmpty());
  ASSERT_THAT(WriteFileAtomically(folder_.File("file"), ""), IsOk());
  EXPECT_FALSE((*OpenStore(folder_.File("file/store")))->CheckWritable().ok());
}

TEST_F(DirectoryStoreTest, OtherPlacesAreOpenedOrRefused) {
  EXPECT_EQ((*OpenStore("s3://bucket/a?region=eu-1"))->place(), "s3://bucket/a");
  EXPECT_THAT(OpenStore("s3://B"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'B'")));
}

TEST(LocalFileTest, ANamelessFileHasNoNameAndCanBeOpenedByItsPath) {
  MUSTER_ASSERT_OK_AND_ASSIGN(LocalFile file, LocalFile::Nameless());
  MUSTER_ASSERT_OK_AND_ASSIGN(OutputFile out, OutputFile::Open(file.path()));
  ASSERT_THAT(out.WriteAt(0, "text"), IsOk());
  EXPECT_EQ(*ReadFile(file.path(), 10), "text");
  EXPECT_EQ(fs::hard_link_count(file.path()), 0u);
}

}  // namespace
}  // namespace muster
