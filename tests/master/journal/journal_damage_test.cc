#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/journal/journal_on_disk.h"
#include "tests/support/memory_journal.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using testing::DiskModel;
using testing::IsOk;
using testing::JournalMachine;
using testing::kJournalFolder;
using testing::Stored;

using Records = std::vector<std::pair<std::string, std::string>>;

/// A journal with tables, a manifest that was added to, and a log with several batches; and what it
/// holds. Nothing in it is unacknowledged.
struct Whole {
  DiskModel disk;
  Records state;
};
absl::StatusOr<Whole> MakeWhole() {
  testing::MemoryJournal memory;
  DiskModel disk;
  uint64_t batch = 0;
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{50'000, 100, 40'000, 100, 30'000},
        std::vector<size_t>{100, 40'000, 40'000, 100, 200, 50}}) {
    JournalMachine machine(disk);
    {
      MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Journal> journal, machine.Open());
      for (const size_t bytes : sizes) {
        const std::vector<Mutation> mutations = testing::SampleBatch(++batch, bytes);
        MUSTER_RETURN_IF_ERROR(journal->Write(mutations));
        MUSTER_RETURN_IF_ERROR(memory.Write(mutations));
      }
    }
    disk = machine.files().disk();
  }
  return Whole{disk, Stored(memory.state())};
}

/// The result of opening a journal on that disk: "" if it has everything, "refused" if it reports
/// the damage clearly, otherwise the problem.
std::string Outcome(const DiskModel& disk, const Records& state) {
  JournalMachine machine(disk);
  const auto journal = machine.Open();
  if (journal.ok()) {
    return Stored((*journal)->TakeState()) == state ? "" : "it was opened with something missing";
  }
  const std::string text(Message(journal.status()));
  if (!absl::IsDataLoss(journal.status())) return "no kDataLoss: " + text;
  if (text.find(std::string(kJournalFolder) + "/") == std::string::npos) return "no file: " + text;
  if (text.find("backup") == std::string::npos && text.find("ut it back") == std::string::npos) {
    return "no advice: " + text;
  }
  return "refused";
}

/// True if a file has nothing of the state.
bool Idle(const std::string& path) {
  return path.ends_with("/LOCK") || path.ends_with("/IDENTITY") ||
         path.find("/OPTIONS-") != std::string::npos;
}

/// Positions in a file of `bytes`: all of a short one, its ends and every n-th of a long one.
std::vector<uint64_t> Positions(uint64_t bytes) {
  std::vector<uint64_t> positions;
  const uint64_t ends = 12 * testing::Seeds(1);
  const uint64_t step = std::max<uint64_t>(1, bytes / ends);
  for (uint64_t at = 0; at < bytes; ++at) {
    if (at < ends || at + ends >= bytes || at % step == 0) positions.push_back(at);
  }
  return positions;
}

TEST(JournalDamage, ACutOffFileIsRefused) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Whole whole, MakeWhole());
  ASSERT_EQ(Outcome(whole.disk, whole.state), "");
  for (const std::string& path : whole.disk.Files()) {
    if (Idle(path)) continue;
    uint64_t refused = 0;
    const uint64_t bytes = whole.disk.Contents(path)->size();
    for (const uint64_t size : Positions(bytes)) {
      DiskModel disk(whole.disk);
      disk.Truncate(path, size);
      const std::string outcome = Outcome(disk, whole.state);
      EXPECT_THAT(outcome, ::testing::AnyOf("", "refused")) << path << " cut to " << size;
      refused += outcome == "refused" ? 1 : 0;
    }
    std::printf("%s: %lu bytes, %lu cuts refused\n", path.c_str(), bytes, refused);
    DiskModel disk(whole.disk);
    disk.Remove(path);
    EXPECT_THAT(Outcome(disk, whole.state), ::testing::AnyOf("", "refused")) << path << " deleted";
  }
}

TEST(JournalDamage, AChangedBitIsRefusedOrWithoutEffect) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Whole whole, MakeWhole());
  for (const std::string& path : whole.disk.Files()) {
    if (Idle(path)) continue;
    const std::string contents = *whole.disk.Contents(path);
    uint64_t refused = 0;
    const std::vector<uint64_t> positions = Positions(contents.size());
    for (const uint64_t at : positions) {
      DiskModel disk(whole.disk);
      const char flipped = static_cast<char>(contents[at] ^ (1 << (at % 8)));
      disk.Write(path, at, {&flipped, 1});
      const std::string outcome = Outcome(disk, whole.state);
      EXPECT_THAT(outcome, ::testing::AnyOf("", "refused")) << path << " changed at " << at;
      refused += outcome == "refused" ? 1 : 0;
    }
    std::printf("%s: %lu bytes, %lu of %lu changes refused\n", path.c_str(), contents.size(),
                refused, positions.size());
  }
}

}  // namespace
}  // namespace muster
