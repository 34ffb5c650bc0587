#include "master/core/group_job/group_stores.h"

#include <fmt/format.h>

#include "base/text.h"

namespace muster {

void GroupStores::Take(const StoredStates& said, StepTime at) {
  if (life_->over()) return;
  TakeWrites(said, at);
  TakeReads(said, at);
}

void GroupStores::TakeReads(const StoredStates& said, StepTime at) {
  if (said.unreadable.has_value()) {
    unreadable_ = *said.unreadable;
    unreadable_by_ = said.unreadable_by;
  }
  // While some process may still read it, time does not count.
  const std::string error = said.unreadable.has_value() ? unreadable_.error : "";
  const RestoreTrouble::Change change =
      read_.Take({error, said.forms ? unreadable_.pieces : 0}, at.now);
  if (change == RestoreTrouble::Change::kBegan) {
    books_->Say(at, "restore-error", unreadable_by_,
                fmt::format("{}; it tries again, and the group waits", ReadText()));
  } else if (change == RestoreTrouble::Change::kOver) {
    unreadable_ = {};
    books_->Say(at, "restored", "", "the group has its state again");
  }
  if (!unrestorable()) return;
  life_->End(
      JobState::kFailed,
      RestoreTrouble::EndText(fmt::format("{}: {}", unreadable_by_, ReadText()),
                              books_->options.restore_timeout, books_->options.snapshot_directory),
      at);
}

void GroupStores::TakeWrites(const StoredStates& said, StepTime at) {
  // What was stored since shows that it works, and nothing else does.
  const auto turn =
      said.checkpoint > checkpoint_ ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds::max();
  const WriteTrouble::Change change =
      write_.Take({said.unwritten, books_->ledger.commit_seq()}, at.now, turn);
  if (change == WriteTrouble::Change::kOver) {
    unwritten_.clear();
    books_->Say(at, "snapshots-work-again", "", "");
  }
  if (said.unwritten.empty()) return;
  checkpoint_ = said.checkpoint;
  written_by_ = said.unwritten_by;
  if (said.unwritten == unwritten_) return;
  unwritten_ = said.unwritten;
  books_->Say(at, "snapshot-error", said.unwritten_by,
              fmt::format("{}; no shard is COMMITTED until this is fixed", unwritten_));
}

std::string GroupStores::ReadText() const {
  if (!read_.active()) return {};
  return fmt::format("{} of the state of the group cannot be read: {}",
                     CountText(unreadable_.pieces, "piece"), unreadable_.error);
}

bool GroupStores::unrestorable() const {
  return read_.active() && read_.lasts() >= books_->options.restore_timeout;
}

}  // namespace muster
