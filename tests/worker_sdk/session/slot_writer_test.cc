#include "worker_sdk/session/slot_writer.h"

#include <sys/stat.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::sdk {
namespace {

TEST(SlotWriterTest, TheFileTellsWhatEveryLoopIsIn) {
  muster::testing::TempDir dir;
  auto slot = [&] { return *ParseSlot(*ReadFile(dir.File("slot"), 4'096)); };
  LeaseToken a = LeaseToken::FromValue(5), b = LeaseToken::FromValue(6);
  {
    SlotWriter writer(dir.File("slot"), 77);
    EXPECT_EQ(slot(), (SlotRecord{.incarnation = 77}));
    writer.Enter(a);
    writer.Minibatch(a);
    writer.Minibatch(a);
    EXPECT_EQ(slot(), (SlotRecord{.incarnation = 77, .computing = {{a, 2}}}));
    writer.Enter(b);
    writer.Minibatch(b);
    EXPECT_EQ(slot(), (SlotRecord{.incarnation = 77, .computing = {{a, 2}, {b, 1}}}));
    writer.Leave(a);
    writer.Leave(a);
    EXPECT_EQ(slot(), (SlotRecord{.incarnation = 77, .computing = {{b, 1}}}));
    writer.Leave(b);
    writer.End();
  }
  EXPECT_EQ(slot(), (SlotRecord{.incarnation = 77, .ended = true}));
}

TEST(SlotWriterTest, TheFileIsForItsUserOnlyAndTakenOverByTheNextProcess) {
  muster::testing::TempDir dir;
  const std::string path = dir.File("slot");
  {
    SlotWriter dead(path, 77);
    dead.Enter(LeaseToken::FromValue(5));
    dead.Minibatch(LeaseToken::FromValue(5));
  }
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  SlotWriter next(path, 78);
  EXPECT_EQ(*ParseSlot(*ReadFile(path, 4'096)), (SlotRecord{.incarnation = 78}));
}

TEST(SlotWriterTest, WithoutAFileNothingHappens) {
  SlotWriter none("", 1);
  none.Enter(LeaseToken::FromValue(5));
  SlotWriter impossible("/nowhere/slot", 1);
  impossible.Enter(LeaseToken::FromValue(5));
  impossible.End();
}

}  // namespace
}  // namespace muster::sdk
