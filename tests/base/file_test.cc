#include "base/file.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

TEST(FileTest, APrivateFolderIsNewAndTheOwnersAlone) {
  const TempDir parent;
  const mode_t former = ::umask(0);
  const absl::StatusOr<std::string> first = MakePrivateFolder(parent.path(), "keys");
  const absl::StatusOr<std::string> second = MakePrivateFolder(parent.path(), "keys");
  ::umask(former);
  ASSERT_THAT(first.status(), IsOk());
  ASSERT_THAT(second.status(), IsOk());
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(first->starts_with(parent.File("keys-"))) << *first;
  struct stat info;
  ASSERT_EQ(::stat(first->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(::chmod(first->c_str(), 0755), 0);
  EXPECT_THAT(MakePrivate(*first), IsOk());
  ASSERT_EQ(::stat(first->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_THAT(MakePrivateFolder(parent.File("absent"), "keys").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent/keys-")));
  EXPECT_THAT(MakePrivate(parent.File("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

TEST(FileTest, AtomicWriteReplacesTheWholeFileAndLeavesNothingBeside) {
  TempDir dir;
  const std::string path = dir.File("state");
  ASSERT_THAT(WriteFileAtomically(path, "a longer first version"), IsOk());
  ASSERT_THAT(WriteFileAtomically(path, "second"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string contents, ReadFile(path, 100));
  EXPECT_EQ(contents, "second");
  EXPECT_THAT(WriteFileAtomically(dir.File("missing/state"), "x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing/state")));
}

TEST(FileTest, ReadRefusesWhatIsLargerThanTheLimitAndNamesIt) {
  TempDir dir;
  const std::string path = dir.File("big");
  ASSERT_THAT(WriteFileAtomically(path, "12345"), IsOk());
  EXPECT_THAT(ReadFile(path, 5), IsOk());
  EXPECT_THAT(ReadFile(path, 4),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit of 4")));
}

TEST(FileTest, MapGivesTheBytesAndAnEmptyFileIsEmpty) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir.File("a"), "bytes"), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir.File("empty"), ""), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const MappedFile mapped, MappedFile::Open(dir.File("a")));
  EXPECT_EQ(mapped.bytes(), "bytes");
  MUSTER_ASSERT_OK_AND_ASSIGN(const MappedFile empty, MappedFile::Open(dir.File("empty")));
  EXPECT_TRUE(empty.bytes().empty());
  EXPECT_FALSE(MappedFile::Open(dir.path()).ok());
}

TEST(FileTest, AnyPartOfAFileIsReadUpToItsEnd) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir.File("a"), "bytes"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(dir.File("a")));
  char into[4];
  MUSTER_ASSERT_OK_AND_ASSIGN(const size_t whole,
                              file.ReadAt(1, std::as_writable_bytes(std::span(into))));
  EXPECT_EQ(std::string_view(into, whole), "ytes");
  MUSTER_ASSERT_OK_AND_ASSIGN(const size_t less,
                              file.ReadAt(3, std::as_writable_bytes(std::span(into))));
  EXPECT_EQ(std::string_view(into, less), "es");
  EXPECT_THAT(InputFile::Open(dir.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.File("none"))));
  MUSTER_ASSERT_OK_AND_ASSIGN(const InputFile folder, InputFile::Open(dir.path()));
  EXPECT_THAT(folder.ReadAt(0, std::as_writable_bytes(std::span(into))).status().ToString(),
              HasSubstr(dir.path() + ": Is a directory"));
}

TEST(FileTest, WhatIsWrittenBackIsInTheFile) {
  TempDir dir;
  const std::string path = dir.File("large");
  MUSTER_ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Open(path));
  ASSERT_THAT(file.WriteAt(0, "first "), IsOk());
  file.WriteBack(0, 6);
  ASSERT_THAT(file.WriteAt(6, "second"), IsOk());
  file.WriteBack(6, 6);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string contents, ReadFile(path, 100));
  EXPECT_EQ(contents, "first second");
}

TEST(FileTest, ASecretIsWrittenForItsOwnerAlone) {
  TempDir dir;
  const std::string path = dir.File("secret");
  ASSERT_THAT(WriteFileAtomically(path, "x"), IsOk());
  ASSERT_THAT(WriteFileAtomically(path, "y", FileAccess::kOwnerOnly), IsOk());
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(FileTest, MakeDirectoriesMakesEveryLevelThatIsMissing) {
  TempDir dir;
  for (const std::string folder : {"a/b/c", "a/b/c", "a/d/"}) {
    EXPECT_THAT(MakeDirectories(dir.File(folder)), IsOk());
    EXPECT_THAT(SyncPath(dir.File(folder)), IsOk());
  }
  ASSERT_THAT(WriteFileAtomically(dir.File("file"), ""), IsOk());
  for (const std::string folder : {"file", "file/below"}) {
    EXPECT_THAT(MakeDirectories(dir.File(folder)).ToString(),
                HasSubstr("cannot create the folder"));
  }
}

}  // namespace
}  // namespace muster
