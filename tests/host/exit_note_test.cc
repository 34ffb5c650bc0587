#include "host/exit_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::EndsWith;
using testing::IsOk;
using ::testing::Le;

NodeExited Crash() {
  return {.node = "worker-0",
          .exit = {.signal = 11, .code = 0},
          .slot = SlotRecord{.incarnation = 7,
                             .computing = {{LeaseToken::FromValue(0x1234567890abcdef), 3}},
                             .ended = false,
                             .crowded = true},
          .last_words = "the end\n",
          .memory_kill = MemoryKill::kOwn,
          .memory_peak_bytes = 100,
          .memory_limit_bytes = 90};
}

TEST(ExitNoteTest, ComesBackAsItWas) {
  const absl::StatusOr<NodeExited> read = ParseExitNote(ExitNote(Crash()));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->exit, Crash().exit);
  EXPECT_EQ(read->slot, Crash().slot);
  EXPECT_EQ(read->last_words, "the end\n");
  EXPECT_EQ(read->memory_kill, MemoryKill::kOwn);
  EXPECT_EQ(read->memory_peak_bytes, 100u);
  EXPECT_EQ(read->memory_limit_bytes, 90u);
}

TEST(ExitNoteTest, NoSlotStaysNoSlot) {
  NodeExited crash = Crash();
  crash.slot.reset();
  const absl::StatusOr<NodeExited> read = ParseExitNote(ExitNote(crash));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->slot, std::nullopt);
}

// The worst log: bytes that JSON writes as six. And every loop is in a shard.
TEST(ExitNoteTest, FitsAndKeepsTheEndOfTheLog) {
  NodeExited crash = Crash();
  crash.last_words = std::string(100'000, '\x01') + "\nlast";
  while (crash.slot->computing.size() < SlotFile::kLoopsMax) {
    crash.slot->computing.push_back({LeaseToken::FromValue(~uint64_t{0}), ~uint32_t{0}});
  }
  const std::string note = ExitNote(crash);
  EXPECT_THAT(note.size(), Le(kExitNoteBytesMax));
  const absl::StatusOr<NodeExited> read = ParseExitNote(note);
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->last_words, EndsWith("last"));
  EXPECT_EQ(read->slot, crash.slot);
}

TEST(ExitNoteTest, RefusesWhatIsNoNote) {
  for (const char* note : {"", "killed", "{}", "[]", R"({"signal":"x"})"}) {
    EXPECT_EQ(ParseExitNote(note).status().code(), absl::StatusCode::kInvalidArgument) << note;
  }
  std::string note = ExitNote(Crash());
  note.replace(note.find("\"memory_kill\":2"), 15, "\"memory_kill\":9");
  EXPECT_EQ(ParseExitNote(note).status().code(), absl::StatusCode::kInvalidArgument);
}

// A trainer can write into the file of its container's note.
TEST(ExitNoteTest, ALieInANumberIsRefused) {
  const std::string note = ExitNote(Crash());
  const std::pair<const char*, const char*> lies[] = {
      {"\"signal\":11", "\"signal\":65"},
      {"\"signal\":11", "\"signal\":-1"},
      {"\"signal\":11", "\"signal\":1e300"},
      {"\"code\":0", "\"code\":256"},
      {"\"code\":0", "\"code\":4294967296"},
      {"\"memory_kill\":2", "\"memory_kill\":4294967297"},
      {"\"memory_peak_bytes\":100", "\"memory_peak_bytes\":-1"},
      {"\"memory_peak_bytes\":100", "\"memory_peak_bytes\":1.5"},
      {"\"memory_limit_bytes\":90", "\"memory_limit_bytes\":\"90\""},
      {"\"incarnation\":7", "\"incarnation\":-7"},
      {",3]]", ",4294967296]]"},
      {",3]]", "]]"},
      {",3]]", ",3],3]"},
      {"\"ended\":false", "\"ended\":0"},
  };
  for (const auto& [truth, lie] : lies) {
    std::string changed = note;
    const size_t at = changed.find(truth);
    ASSERT_NE(at, std::string::npos) << truth << " in " << note;
    changed.replace(at, std::string_view(truth).size(), lie);
    EXPECT_EQ(ParseExitNote(changed).status().code(), absl::StatusCode::kInvalidArgument) << lie;
  }
  std::string loops = "\"loops\":[";
  for (size_t i = 0; i <= SlotFile::kLoopsMax; ++i) loops += "[1,1],";
  std::string crowded = note;
  crowded.replace(crowded.find("\"loops\":["), 9, loops);
  EXPECT_EQ(ParseExitNote(crowded).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster
