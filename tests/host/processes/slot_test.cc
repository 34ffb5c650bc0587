#include "host/processes/slot.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using testing::IsOk;
using testing::TempDir;

TEST(SlotTest, ResetForgetsThePredecessor) {
  TempDir folder;
  const std::string path = folder.File("worker-0.slot");
  ASSERT_THAT(WriteFileAtomically(path, std::string(sizeof(SlotFile), 'x')), IsOk());
  ASSERT_THAT(ResetSlot(path), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, 4'096));
  EXPECT_EQ(bytes, std::string(sizeof(SlotFile), '\0'));
  EXPECT_FALSE(ReadSlot(path).has_value());
}

TEST(SlotTest, ReadsWhatAProcessLeftBehind) {
  TempDir folder;
  const std::string path = folder.File("worker-0.slot");
  SlotFile slot{};
  BeginSlot(&slot, 9);
  EnterShard(&slot, LeaseToken::FromValue(77));
  ASSERT_THAT(WriteFileAtomically(
                  path, std::string_view(reinterpret_cast<const char*>(&slot), sizeof(slot))),
              IsOk());
  ASSERT_TRUE(ReadSlot(path).has_value());
  ASSERT_TRUE(ReadSlot(path)->Alone().has_value());
  EXPECT_EQ(ReadSlot(path)->Alone()->token, LeaseToken::FromValue(77));
  EXPECT_FALSE(ReadSlot(folder.File("none")).has_value());
  EXPECT_FALSE(ReadSlot("").has_value());
}

TEST(SlotTest, ALieIsNoRecord) {
  TempDir folder;
  const std::string path = folder.File("worker-0.slot");
  SlotFile slot{};
  BeginSlot(&slot, 9);
  const std::string good(reinterpret_cast<const char*>(&slot), sizeof(slot));
  for (const std::string& lie : {std::string(), good.substr(0, good.size() - 1),
                                 std::string(sizeof(slot), 'x'), std::string(10'000, '\0')}) {
    ASSERT_THAT(WriteFileAtomically(path, lie), IsOk());
    EXPECT_FALSE(ReadSlot(path).has_value()) << lie.size();
  }
  EXPECT_FALSE(ReadSlot(folder.path()).has_value()) << "a folder";
}

TEST(SlotTest, APredecessorThatStillWritesDoesNotReachTheNewFile) {
  TempDir folder;
  const std::string path = folder.File("worker-0.slot");
  ASSERT_THAT(ResetSlot(path), IsOk());
  const OwnedFd old(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_THAT(ResetSlot(path), IsOk());
  SlotFile slot{};
  BeginSlot(&slot, 9);
  ASSERT_EQ(::write(old.get(), &slot, sizeof(slot)), static_cast<ssize_t>(sizeof(slot)));
  EXPECT_FALSE(ReadSlot(path).has_value());
}

TEST(SlotTest, NamesTheFileThatCannotBeMade) {
  EXPECT_THAT(ResetSlot("/no/such/folder/worker-0.slot"),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                ::testing::HasSubstr("/no/such/folder/worker-0.slot")));
}

}  // namespace
}  // namespace muster
