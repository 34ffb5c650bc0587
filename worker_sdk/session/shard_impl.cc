#include "worker_sdk/session/shard_impl.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/status.h"

namespace muster::internal {

ShardImpl::ShardImpl(SessionImpl* session, SessionImpl::NextResult shard)
    : session_(session),
      shard_(std::move(shard.shard)),
      reader_(shard.reader),
      records_(std::make_shared<const sdk::ShardRecords>(std::move(shard.records))) {
  metrics_.records = records_->records.size();
}

ShardImpl::ShardImpl(SessionImpl* session, StepLoop* loop, sdk::ShardRun shard,
                     sdk::ShardReader* reader, std::shared_ptr<const sdk::ShardRecords> records,
                     ShardMetrics metrics)
    : session_(session),
      step_(loop),
      shard_(std::move(shard)),
      reader_(reader),
      records_(std::move(records)),
      metrics_(std::move(metrics)) {}

ShardImpl::~ShardImpl() {
  EndLoop();
  window_.clear();
  if (!left_ && step_ == nullptr) session_->GiveUp(run());
}

std::string ShardImpl::id() const {
  return fmt::format("{}/{}/{}", work().dataset_name, shard_id().epoch.value(),
                     shard_id().index.value());
}

std::string ShardImpl::LocationOf(size_t position) const {
  return reader_->LocationOf(work(), *records_, position);
}

bool ShardImpl::Begin(Prepare prepare) {
  if (begun_ || left_) return false;
  begun_ = true;
  prepare_ = std::move(prepare);
  session_->EnterLoop();
  in_loop_ = true;
  if (step_ != nullptr) RunEmptyMinibatches();
  PrepareAhead();
  if (window_.empty() && !left_) {
    Complete();  // none of the topic's offsets has a record
  } else if (StartFront()) {
    return true;
  }
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
  window_.front().Commit();
  if (step_ != nullptr && !left_) {
    const size_t records = window_.front().records().size();
    metrics_.records += records;
    step_->End(window_.front().index(), records, metrics_);
  }
  if (left_) return false;
  window_.pop_front();
  PrepareAhead();
  if (!window_.empty()) return StartFront();
  Complete();
  return false;
}

void ShardImpl::Complete() {
  if (left_ || !WriteRejected()) return;
  left_ = true;
  if (step_ != nullptr) return step_->Complete();
  session_->CompleteShard(run(), metrics_);
}

bool ShardImpl::WriteRejected() {
  if (rejected_.empty()) return true;
  const absl::Status written = reader_->WriteRejected(
      work(), *records_, rejected_,
      session_->WaitingFor(run(), "the dead-letter topic to take records", /*leaving=*/true));
  if (written.ok()) return true;
  const std::string what = fmt::format(
      "rejected records could not be written to the dead-letter topic: {}", Message(written));
  if (!absl::IsUnavailable(written) || step_ != nullptr) {
    Fail(what);
    return false;
  }
  // Not the shard's fault: it is handed back, and its records are rejected again.
  std::string reason = fmt::format("shard {}: {}", id(), what);
  std::fprintf(stderr, "muster: handed back: %s\n", reason.c_str());
  left_ = true;
  session_->GiveUp(run(), sdk::ShardFailure{std::move(reason), false, true});
  return false;
}

void ShardImpl::AddRejected(size_t position, std::string_view reason) {
  if (reader_->KeepsRejected(work())) rejected_.push_back({position, std::string(reason)});
}

bool ShardImpl::StartFront() {
  if (left_) return false;  // `prepare` may have failed the shard
  if (step_ != nullptr) {
    if (step_->Start(window_.front().index())) return true;
    // Those that have run stay with the step.
    if (!left_) WriteRejected();
    left_ = true;
    return false;
  }
  if (session_->StartMinibatch(run())) return true;
  // The lease is lost, or the session failed. In the first case there is nothing to hand back, and
  // GiveUp knows that.
  left_ = true;
  session_->GiveUp(run());
  return false;
}

bool ShardImpl::MayPrepareMore() const {
  uint64_t floats = 0;
  for (size_t ahead = 1; ahead < window_.size(); ++ahead) {
    floats += window_[ahead].floats_asked();
  }
  return sdk::MayHold(window_.size(), floats);  // counts the next one as ahead, not the current one
}

void ShardImpl::PrepareAhead() {
  size_t ahead = prepare_ ? session_->job().prefetch_minibatches : 0;
  while (!left_ && prepared_ < minibatches() && window_.size() <= ahead && MayPrepareMore()) {
    size_t first = records_->minibatches[prepared_];
    size_t count = records_->minibatches[prepared_ + 1] - first;
    // Skips offsets of a topic without records, and minibatches that need not run again.
    if (count == 0 || !shard_.Has(MinibatchIndex(prepared_))) {
      ++prepared_;
      continue;
    }
    MinibatchImpl& batch = window_.emplace_back(this, MinibatchIndex(prepared_), first,
                                                std::span(records_->records).subspan(first, count));
    ++prepared_;
    if (!prepare_) continue;
    batch.BeginPrepare();
    prepare_(batch.handle());
    batch.EndPrepare();
  }
}

void ShardImpl::PushOfStep(MinibatchIndex minibatch, std::shared_ptr<const sdk::RowBatch> batch) {
  const ShardGrant& grant = shard_.grant;
  session_->PushOfStep({grant.shard, minibatch, grant.token, shard_.run,
                        work().first_step + minibatch.value(), grant.restore_epoch},
                       std::move(batch));
}

void ShardImpl::RunEmptyMinibatches() {
  for (const MinibatchIndex minibatch : shard_.minibatches) {
    const size_t at = minibatch.value();
    if (records_->minibatches[at] != records_->minibatches[at + 1]) continue;
    if (step_->Start(minibatch)) step_->End(minibatch, 0, metrics_);
  }
}

void ShardImpl::Fail(std::string_view reason) {
  if (left_) return;
  left_ = true;
  const sdk::ShardFailure failure{fmt::format("shard {}: {}", id(), reason)};
  if (step_ != nullptr) return step_->Fail(failure);
  session_->GiveUp(run(), failure);
}

}  // namespace muster::internal
