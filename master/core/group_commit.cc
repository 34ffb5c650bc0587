#include "master/core/group_commit.h"

#include <utility>

#include "base/check.h"

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
  KeepWaiting(at);
  return core_->TakeMutations();
}

void GroupCommit::KeepWaiting(StepTime at) {
  std::vector<Item> answered, kept;
  std::vector<absl::Status> statuses;
  const auto sort = [&](Item& item, const absl::Status& status) {
    if (status.ok() && item.ready && !item.ready(*core_, at)) {
      kept.push_back(std::move(item));
      return;
    }
    answered.push_back(std::move(item));
    statuses.push_back(status);
  };
  for (Item& item : kept_) sort(item, absl::OkStatus());
  for (size_t i = 0; i < items_.size(); ++i) sort(items_[i], statuses_[i]);
  items_ = std::move(answered);
  statuses_ = std::move(statuses);
  kept_ = std::move(kept);
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
  std::vector<Item> items = std::exchange(items_, {});
  for (Item& item : std::exchange(kept_, {})) items.push_back(std::move(item));
  return items;
}

}  // namespace muster
