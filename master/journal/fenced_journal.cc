#include "master/journal/fenced_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "master/journal/generations.h"
#include "master/journal/journal_folder.h"
#include "master/journal/rocksdb_status.h"

namespace muster {
namespace {

/// Masters that start at the same time take the next number from each other.
constexpr int kTriesMax = 8;

class FencedJournal final : public Journal {
 public:
  FencedJournal(std::string folder, std::unique_ptr<Journal> journal)
      : folder_(std::move(folder)), journal_(std::move(journal)) {}

  const std::string& job_id() const override { return journal_->job_id(); }
  DurableState TakeState() override { return journal_->TakeState(); }
  absl::Status Write(std::span<const Mutation> mutations) override {
    const absl::Status written = journal_->Write(mutations);
    // The look comes after the sync: if it finds the folder open, the next master, which closes
    // it before it copies, finds the batch. If the files were removed, the look says why.
    // Rule 11.2.
    const absl::Status owned = Look();
    return written.ok() || absl::IsCancelled(owned) ? owned : written;
  }
  absl::Status Look() override {
    MUSTER_FAILPOINT_OR_RETURN("fence.before-look");
    return LookAtFence(folder_);
  }

 private:
  const std::string folder_;
  const std::unique_ptr<Journal> journal_;
};

absl::Status Superseded(const std::string& folder) {
  return absl::CancelledError(fmt::format(
      "another master has taken over the job, so this one does not start again: the journal is now "
      "in {}. Nothing that was acknowledged is lost, and the job continues there",
      folder));
}

absl::Status InUse(const std::string& folder) {
  return absl::UnavailableError(fmt::format(
      "the journal {}: another master has it open; a job can run only once. Stop the other master "
      "first (if it is paused, kill it). If its machine is lost, `muster master --take-over` takes "
      "the job from it",
      folder));
}

absl::StatusOr<std::string> NewestFolder(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Generation> generations, ListGenerations(directory));
  const Generation* const newest = NewestComplete(generations);
  return FolderOfGeneration(directory, newest == nullptr ? 1 : newest->number);
}

/// The journal in a folder that is ours, if it is still open after it was read.
absl::StatusOr<std::unique_ptr<Journal>> OpenOwn(const std::string& folder,
                                                 const JournalHeader& header) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Journal> journal, OpenRocksdbJournal(folder, header));
  auto fenced = std::make_unique<FencedJournal>(folder, std::move(journal));
  // What was read is what the next master will read, because only this process writes here.
  MUSTER_RETURN_IF_ERROR(fenced->Look());
  return fenced;
}

absl::StatusOr<std::unique_ptr<Journal>> Continue(const std::string& folder,
                                                  const Generation& generation,
                                                  const JournalHeader& header,
                                                  const JournalOwner& owner) {
  // The master that claimed it may have died before. (Of the others, the fence is made with the
  // folder: a master that stood still must not make it in a folder that was removed.)
  if (generation.number == 1) MUSTER_RETURN_IF_ERROR(OpenFence(folder));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Journal> journal, OpenOwn(folder, header));
  if (generation.starter != owner.starter) {
    MUSTER_RETURN_IF_ERROR(RenewFolder(folder, owner.machine, owner.starter));
  }
  return journal;
}

/// Closes all older generations. kCancelled if there is a newer one.
absl::Status CloseOlder(const std::string& directory, const std::vector<Generation>& generations,
                        uint64_t number) {
  for (const Generation& generation : generations) {
    const std::string folder = FolderOfGeneration(directory, generation.number);
    if (generation.number > number) return Superseded(folder);
    if (generation.number < number) MUSTER_RETURN_IF_ERROR(CloseFolder(folder, number));
  }
  // Generation 1 may have no file yet, and a master that is about to claim it.
  return CloseFolder(directory, number);
}

/// A master of another job, or one that may not continue, must not take the job from its master.
absl::Status CheckNewest(const std::string& directory, const JournalHeader& header) {
  const absl::StatusOr<JournalHeader> known = ReadFencedHeader(directory);
  return known.ok() ? CheckHeader(*known, header, directory) : absl::OkStatus();
}

/// Removes what nobody needs any more. What cannot be removed stays.
void RemoveOld(const std::string& directory, const std::vector<Generation>& generations,
               uint64_t own, uint64_t source) {
  const std::vector<uint64_t> removable = Removable(generations, own, source);
  for (const Generation& old : generations) {
    if (std::ranges::count(removable, old.number) == 0) continue;
    // Its folder is the only one that says who may not take the job back.
    const absl::Status kept =
        old.starter.empty() ? absl::OkStatus() : AddSuperseded(directory, old.starter);
    if (kept.ok()) {
      RemoveGeneration(directory, old.number);
    } else {
      Log(LogLevel::kWarning, "the journal's generation {} stays: {}", old.number, Message(kept));
    }
  }
}

absl::StatusOr<std::unique_ptr<Journal>> TakeOver(const std::string& directory, uint64_t number,
                                                  const JournalHeader& header,
                                                  const JournalOwner& owner) {
  const std::string folder = FolderOfGeneration(directory, number);
  MUSTER_RETURN_IF_ERROR(CheckNewest(directory, header));
  // Made before the list is read: of two masters that do this at once, one sees the other.
  MUSTER_RETURN_IF_ERROR(MakeGeneration(directory, number));
  MUSTER_RETURN_IF_ERROR(OpenFence(folder));
  MUSTER_ASSIGN_OR_RETURN(std::vector<Generation> generations, ListGenerations(directory));
  // Rule 11.1.
  MUSTER_RETURN_IF_ERROR(CloseOlder(directory, generations, number));
  // Read again, because an older one may have become complete before it was closed.
  MUSTER_ASSIGN_OR_RETURN(generations, ListGenerations(directory));
  const Generation* const source = NewestComplete(generations);
  const uint64_t from = source == nullptr ? 0 : source->number;
  if (from > number) return Superseded(FolderOfGeneration(directory, from));
  if (from > 0) {
    const absl::Status copied = CopyRocksdbJournal(FolderOfGeneration(directory, from), folder);
    if (!copied.ok() && !absl::IsNotFound(copied)) {
      // Each try makes a generation, so on a full disk the parts would add up.
      RemoveFailedCopy(folder);
      return copied;
    }
  }
  MUSTER_RETURN_IF_ERROR(ClaimFolder(folder, owner.machine, owner.starter));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Journal> journal, OpenOwn(folder, header));
  RemoveOld(directory, generations, number, from);
  Log(LogLevel::kWarning,
      "this master takes over the job: the journal's generation {} continues generation {}", number,
      from);
  return journal;
}

absl::StatusOr<std::unique_ptr<Journal>> TryOpen(const std::string& directory,
                                                 const JournalHeader& header,
                                                 const JournalOwner& owner) {
  StartFacts facts{
      .machine = owner.machine, .starter = owner.starter, .take_over = owner.take_over};
  MUSTER_ASSIGN_OR_RETURN(facts.generations, ListGenerations(directory));
  // Read after the list: a starter is added before its generation goes.
  MUSTER_ASSIGN_OR_RETURN(facts.superseded, ReadSuperseded(directory));
  const Generation* const newest = NewestComplete(facts.generations);
  if (newest != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(facts.locked,
                            IsRocksdbLocked(FolderOfGeneration(directory, newest->number)));
  }
  const StartChoice choice = ChooseGeneration(facts);
  const std::string folder = FolderOfGeneration(directory, choice.number);
  switch (choice.what) {
    case StartChoice::What::kAdopt:
      MUSTER_RETURN_IF_ERROR(ClaimFolder(folder, owner.machine, owner.starter));
      MUSTER_RETURN_IF_ERROR(OpenFence(folder));
      return OpenOwn(folder, header);
    case StartChoice::What::kContinue:
      return Continue(folder, *newest, header, owner);
    case StartChoice::What::kTakeOver:
      return TakeOver(directory, choice.number, header, owner);
    case StartChoice::What::kLocked:
      return InUse(folder);
    case StartChoice::What::kSuperseded:
      break;
  }
  return Superseded(folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenFencedJournal(const std::string& directory,
                                                           const JournalHeader& header,
                                                           const JournalOwner& owner) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  absl::StatusOr<std::unique_ptr<Journal>> journal = TryOpen(directory, header, owner);
  for (int i = 1; i < kTriesMax && absl::IsAlreadyExists(journal.status()); ++i) {
    journal = TryOpen(directory, header, owner);
  }
  const bool worded = Message(journal.status()).find("disk is full") != std::string_view::npos;
  if (absl::IsResourceExhausted(journal.status()) && !worded) {
    return DiskFull(fmt::format("the journal {}: {}", directory, Message(journal.status())));
  }
  return journal;
}

absl::StatusOr<StoredJournal> ReadFencedJournal(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, NewestFolder(directory));
  return ReadRocksdbJournal(folder);
}

absl::StatusOr<JournalHeader> ReadFencedHeader(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, NewestFolder(directory));
  return ReadRocksdbHeader(folder);
}

}  // namespace muster
