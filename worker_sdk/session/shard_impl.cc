#include "worker_sdk/session/shard_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::internal {

ShardImpl::ShardImpl(SessionImpl* session, SessionImpl::NextResult shard)
    : session_(session),
      shard_(std::move(shard.shard)),
      records_(std::move(shard.records)),
      minibatches_(sdk::MinibatchCount(shard_.grant.work)) {
  metrics_.records = shard_.grant.work.record_count;
}

ShardImpl::~ShardImpl() {
  EndLoop();
  window_.clear();
  if (!left_) session_->GiveUp(run());
}

std::string ShardImpl::id() const {
  return fmt::format("{}/{}/{}", work().dataset_name, shard_id().epoch.value(),
                     shard_id().index.value());
}

std::string ShardImpl::LocationOf(size_t position) const {
  return sdk::ShardReader::LocationOf(work(), records_, position);
}

bool ShardImpl::Begin(Prepare prepare) {
  if (begun_ || left_) return false;
  begun_ = true;
  prepare_ = std::move(prepare);
  session_->EnterLoop();
  in_loop_ = true;
  PrepareAhead();
  if (StartFront()) return true;
  EndLoop();
  return false;
}

void ShardImpl::EndLoop() {
  if (std::exchange(in_loop_, false)) session_->LeaveLoop();
}

bool ShardImpl::Advance() {
  if (AdvanceLoop()) return true;
  EndLoop();
  return false;
}

bool ShardImpl::AdvanceLoop() {
  window_.front()->Commit();
  if (left_) return false;
  window_.pop_front();
  PrepareAhead();
  if (!window_.empty()) return StartFront();
  left_ = true;
  session_->CompleteShard(run(), metrics_);
  return false;
}

bool ShardImpl::StartFront() {
  if (left_) return false;  // `prepare` may have failed the shard
  if (session_->StartMinibatch(run())) return true;
  // The lease is lost, or the session failed: nothing to hand back in the first case, and GiveUp
  // knows it.
  left_ = true;
  session_->GiveUp(run());
  return false;
}

void ShardImpl::PrepareAhead() {
  uint32_t size = work().minibatch_size;
  size_t ahead = prepare_ ? session_->job().prefetch_minibatches : 0;
  while (!left_ && prepared_ < minibatches_ && window_.size() <= ahead) {
    size_t first = size_t{prepared_} * size;
    size_t count = std::min<size_t>(size, records_.records.size() - first);
    auto batch = std::make_unique<MinibatchImpl>(this, MinibatchIndex(prepared_), first,
                                                 std::span(records_.records).subspan(first, count));
    ++prepared_;
    MinibatchImpl* raw = window_.emplace_back(std::move(batch)).get();
    if (!prepare_) continue;
    raw->BeginPrepare();
    prepare_(raw->handle());
    raw->EndPrepare();
  }
}

void ShardImpl::Fail(std::string_view reason) {
  if (left_) return;
  left_ = true;
  session_->GiveUp(run(), sdk::ShardFailure{fmt::format("shard {}: {}", id(), reason)});
}

}  // namespace muster::internal
