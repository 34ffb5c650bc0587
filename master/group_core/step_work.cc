#include "master/group_core/step_work.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {

bool StepInWork::HasMembers() const {
  return !books_->members.empty() && books_->members.size() >= books_->options.members_min;
}

std::vector<uint64_t> StepInWork::QuotasOfMembers() const {
  std::vector<uint64_t> minibatch_us;
  for (const GroupProcess& member : books_->members) {
    minibatch_us.push_back(books_->options.quotas ? books_->ReportOf(member).minibatch_us : 0);
  }
  return Quotas(minibatch_us);
}

void StepInWork::Take(StepData data) {
  data_ = std::move(data);
  token_ = books_->data->NewToken(data_->shard);
  MUSTER_CHECK(tokens_.empty() || tokens_.rbegin()->first < token_);
  tokens_.emplace(token_, data_->shard);
}

void StepInWork::Begin() {
  MUSTER_CHECK(!any());
  // Who leaves begins no step.
  // Rule 12.16.
  if (!HasMembers() || books_->AllMembersLeave()) return;
  std::optional<StepData> next = books_->data->Next();
  if (!next.has_value()) return;
  Take(*std::move(next));
  begun_ = token_;
  shares_ = FreshShares(data_->minibatches, QuotasOfMembers());
}

void StepInWork::Retry(const std::vector<GroupProcess>& former) {
  if (!any()) return;
  if (!HasMembers()) return Pause();
  if (HasLostData()) {
    Pause();
    return Begin();
  }
  std::vector<ShareRanges> kept;
  ShareRanges gone;
  for (size_t rank = 0; rank < former.size(); ++rank) {
    if (books_->IsMember(former[rank])) continue;
    gone.insert(gone.end(), shares_[rank].begin(), shares_[rank].end());
  }
  for (const GroupProcess& member : books_->members) {
    const auto before = std::ranges::find(former, member);
    kept.emplace_back();
    if (before != former.end()) {
      kept.back() = shares_[static_cast<size_t>(before - former.begin())];
    }
  }
  books_->data->Redelivered(CountOf(gone));
  Take(*std::exchange(data_, std::nullopt));
  // Rule 12.7.
  shares_ = SharesAfterLoss(std::move(kept), gone, QuotasOfMembers());
}

void StepInWork::Pause() {
  if (any() && !HasLostData()) books_->data->Redelivered(data_->minibatches);
  Clear();
}

void StepInWork::Clear() {
  data_.reset();
  token_ = begun_ = {};
  shares_.clear();
}

void StepInWork::End() {
  Clear();
  // Rule 12.23.
  // Members may still push with tokens of an earlier master, until its step has ended. After that,
  // tokens of this step and of later ones are in use at most.
  if (!tokens_.empty()) books_->data->EndTokensBelow(tokens_.begin()->first);
  tokens_.clear();
}

void StepInWork::Charge(LeaseToken token, const GroupProcess& process, std::string_view reason) {
  const auto shard = tokens_.find(token);
  if (shard == tokens_.end() || !books_->data->IsOpen(shard->second)) return;
  books_->data->Charge(shard->second, token, process.worker, process.incarnation, reason);
}

}  // namespace muster
