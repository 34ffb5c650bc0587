#include "master/core/group_commit.h"

#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"

namespace muster {

std::vector<Mutation> GroupCommit::Step(std::vector<Item> items, StepTime at) {
  MUSTER_CHECK(items_.empty());
  items_ = std::move(items);
  synced_ = false;
  statuses_.clear();
  statuses_.reserve(items_.size());
  for (Item& item : items_) statuses_.push_back(item.step(*core_, at));
  if (at.now - ticked_at_ >= tick_) {
    ticked_at_ = at.now;
    core_->Tick(at);
  }
  if (!AnswersWaitForSync()) AnswerAll();
  return core_->TakeMutations();
}

bool GroupCommit::AnswersWaitForSync() {
  return !MUSTER_PLANTED(kAnswerUnsynced);
}

void GroupCommit::AnswerAll() {
  MUSTER_CHECK(items_.empty() || (synced_ && items_.size() == statuses_.size()));
  for (size_t i = 0; i < items_.size(); ++i) items_[i].answer(statuses_[i]);
  items_.clear();
}

std::vector<std::string> GroupCommit::Synced() {
  synced_ = true;
  AnswerAll();
  return core_->TakeUnusedFiles();
}

std::vector<GroupCommit::Item> GroupCommit::TakeItems() {
  return std::exchange(items_, {});
}

}  // namespace muster
