#include <atomic>

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
using testing::Stored;

using Records = std::vector<std::pair<std::string, std::string>>;

/// A disk right after a power loss, and how much of the series the journal had acknowledged and
/// begun to write by then.
struct Loss {
  DiskModel disk;
  uint64_t acknowledged = 0;
  uint64_t begun = 0;
};

/// A series of batches written to one journal, opened again now and then, with the power lost at
/// random moments: the disks that are found then.
class Series {
 public:
  Series(uint64_t seed, const DiskModel::Faults& faults) : rng_(seed), disk_(faults) {
    states_.push_back(Stored(testing::MemoryJournal().state()));
  }

  /// `lives` openings of the journal, each with up to 12 batches, and then closed in order.
  absl::Status Run(int lives) {
    for (int life = 0; life < lives; ++life) {
      JournalMachine machine(disk_);
      machine.files().OnChange([this](const DiskModel& disk) {
        if (rng_.Below(3) == 0)
          losses_.push_back({disk.AfterPowerLoss(&rng_), acknowledged_, begun_});
      });
      {
        MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Journal> journal, machine.Open());
        for (uint64_t i = rng_.Below(12); i > 0; --i) MUSTER_RETURN_IF_ERROR(Write(journal.get()));
      }
      machine.files().OnChange(nullptr);
      disk_ = machine.files().disk();
    }
    return absl::OkStatus();
  }

  const std::vector<Loss>& losses() const { return losses_; }
  /// The state after so many batches.
  const Records& StateAfter(uint64_t batches) const { return states_[batches]; }

  /// Why what a journal finds on that disk is wrong; empty: it is right.
  std::string Check(const Loss& loss) {
    JournalMachine machine(loss.disk);
    auto journal = machine.Open();
    if (!journal.ok()) return fmt::format("not opened: {}", Message(journal.status()));
    const Records found = Stored((*journal)->TakeState());
    for (uint64_t batches = loss.acknowledged; batches <= loss.begun; ++batches) {
      if (found == states_[batches]) return GoesOn(&machine, *std::move(journal), batches);
    }
    return fmt::format("{} records, which is no state after {} to {} batches", found.size(),
                       loss.acknowledged, loss.begun);
  }

 private:
  absl::Status Write(Journal* journal) {
    const std::vector<Mutation> batch = NextBatch();
    MUSTER_RETURN_IF_ERROR(memory_.Write(batch));
    states_.push_back(Stored(memory_.state()));
    ++begun_;
    MUSTER_RETURN_IF_ERROR(journal->Write(batch));
    ++acknowledged_;
    return absl::OkStatus();
  }
  std::vector<Mutation> NextBatch() {
    return testing::SampleBatch(begun_ + 1,
                                rng_.Below(4) == 0 ? rng_.Below(60'000) : rng_.Below(200));
  }
  /// A journal that was recovered takes the next batch and has it when it is opened again.
  static std::string GoesOn(JournalMachine* machine, std::unique_ptr<Journal> journal,
                            uint64_t batches) {
    const absl::Status written = journal->Write(testing::SampleBatch(batches + 1, 10));
    if (!written.ok()) return fmt::format("not written on: {}", Message(written));
    journal.reset();
    const auto again = machine->Open();
    if (!again.ok()) return fmt::format("not opened again: {}", Message(again.status()));
    const DurableState state = (*again)->TakeState();
    return state.meta.has_value() && state.meta->done_seq == DoneSeq(batches + 1)
               ? ""
               : "what was written after the recovery is gone";
  }

  Rng rng_;
  DiskModel disk_;
  testing::MemoryJournal memory_;
  // Changed by the thread that writes, read by RocksDB's when they change a file.
  std::atomic<uint64_t> acknowledged_{0};
  std::atomic<uint64_t> begun_{0};
  std::vector<Records> states_;
  std::vector<Loss> losses_;
};

TEST(JournalPowerLoss, FindsEveryAcknowledgedBatchAndNoHalfOne) {
  uint64_t losses = 0;
  for (uint64_t seed = 1; seed <= testing::Seeds(4); ++seed) {
    Series series(seed, {});
    ASSERT_THAT(series.Run(4), IsOk());
    for (size_t i = 0; i < series.losses().size(); ++i, ++losses) {
      ASSERT_EQ(series.Check(series.losses()[i]), "") << "seed " << seed << ", loss " << i;
    }
  }
  std::printf("%lu power losses\n", losses);
}

/// True if a power loss in some seeds gives a wrong result.
bool IsFound(const DiskModel::Faults& faults) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Series series(seed, faults);
    if (!series.Run(2).ok()) return true;
    for (const Loss& loss : series.losses()) {
      if (!series.Check(loss).empty()) return true;
    }
  }
  return false;
}

TEST(JournalPowerLoss, WithoutSyncsItIsFoundThatSomethingIsLost) {
  EXPECT_TRUE(IsFound({.files_stay_unsynced = true}));
  EXPECT_TRUE(IsFound({.folders_stay_unsynced = true}));
}

}  // namespace
}  // namespace muster
