#include "worker_sdk/session/minibatch_loop.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"

namespace muster::internal {

MinibatchLoop::MinibatchLoop(LoopSession* session, LoopOwner* owner, LoopWork work)
    : session_(session),
      owner_(owner),
      shard_(std::move(work.shard)),
      reader_(work.reader),
      records_(std::move(work.records)),
      metrics_(std::move(work.metrics)) {}

void MinibatchLoop::Close() {
  EndLoop();
  window_.clear();
}

const TableSpec* MinibatchLoop::FindTable(TableId id) {
  if (id.value() < tables_.size() && tables_[id.value()] != nullptr) return tables_[id.value()];
  const TableSpec* const table = session_->FindTable(id);
  if (table == nullptr) return nullptr;
  if (tables_.size() <= id.value()) tables_.resize(id.value() + 1);
  return tables_[id.value()] = table;
}

std::string MinibatchLoop::id() const {
  return fmt::format("{}/{}/{}", work().dataset_name, shard_id().epoch.value(),
                     shard_id().index.value());
}

std::string MinibatchLoop::LocationOf(size_t position) const {
  return reader_->LocationOf(work(), *records_, position);
}

size_t MinibatchLoop::RecordsOf(uint32_t minibatch) const {
  return records_->minibatches[minibatch + 1] - records_->minibatches[minibatch];
}

bool MinibatchLoop::Begin(Prepare prepare) {
  if (begun_ || left_) return false;
  begun_ = true;
  prepare_ = std::move(prepare);
  session_->EnterLoop();
  in_loop_ = true;
  SkipEmpty();
  PrepareAhead();
  if (window_.empty() && !left_) {
    Complete();  // none of the topic's offsets has a record
  } else if (StartFront()) {
    return true;
  }
  EndLoop();
  return false;
}

void MinibatchLoop::EndLoop() {
  if (std::exchange(in_loop_, false)) session_->LeaveLoop();
}

bool MinibatchLoop::Advance() {
  if (AdvanceLoop()) return true;
  EndLoop();
  return false;
}

bool MinibatchLoop::AdvanceLoop() {
  MinibatchImpl& front = window_.front();
  front.Commit();
  if (left_) return false;
  const size_t records = front.records().size();
  metrics_.records += records;
  owner_->End(front.index(), records, metrics_);
  window_.pop_front();
  PrepareAhead();
  if (!window_.empty()) return StartFront();
  Complete();
  return false;
}

void MinibatchLoop::Complete() {
  if (left_ || !WriteResults()) return;  // Rule 13.4.
  left_ = true;
  owner_->Complete(std::move(metrics_));
}

bool MinibatchLoop::WriteResults() {
  const bool all_rejected = metrics_.rejected_records >= records_->records.size();
  if (predict() && !output_.given() && !all_rejected) {
    Fail("it is of a predict dataset, and none of its minibatches has called Output");
    return false;
  }
  if (!rejected_.empty()) {
    const absl::Status written = reader_->WriteRejected(
        work(), *records_, rejected_,
        session_->WaitingFor(run(), "the dead-letter topic to take records", /*leaving=*/true));
    if (!written.ok()) {
      FailWriting(written, "rejected records could not be written to the dead-letter topic");
      return false;
    }
  }
  if (!output_.given()) return true;
  const absl::StatusOr<std::string> object = output_.Object();
  if (!object.ok()) {
    FailWriting(object.status(), "its outputs could not be made an object");
    return false;
  }
  const absl::Status written = session_->WriteOutput(
      run(), work().output, output_.NameOf(work().dataset_name, shard_id().index), *object);
  if (!written.ok()) FailWriting(written, "its outputs could not be written");
  return written.ok();
}

void MinibatchLoop::FailWriting(const absl::Status& status, std::string_view what) {
  const std::string why = fmt::format("{}: {}", what, Message(status));
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status)) return Fail(why);
  left_ = true;
  EndLoop();  // the owner may pause
  owner_->HandBack(fmt::format("shard {}: {}", id(), why));
}

void MinibatchLoop::AddRejected(size_t position, std::string_view reason) {
  if (reader_->KeepsRejected(work())) rejected_.push_back({position, std::string(reason)});
}

bool MinibatchLoop::StartFront() {
  if (left_) return false;  // `prepare` may have failed the run
  switch (owner_->Start(window_.front().index())) {
    case LoopOwner::Next::kRun:
      return true;
    case LoopOwner::Next::kEnd:
      Complete();
      return false;
    case LoopOwner::Next::kLost:
      break;
  }
  left_ = true;
  return false;
}

bool MinibatchLoop::MayPrepareMore() const {
  uint64_t floats = 0;
  for (size_t ahead = 1; ahead < window_.size(); ++ahead) {
    floats += window_[ahead].floats_asked();
  }
  return sdk::MayHold(window_.size(), floats);  // the next one is ahead, the current one is not
}

void MinibatchLoop::PrepareAhead() {
  const size_t ahead = prepare_ ? session_->job().prefetch_minibatches : 0;
  while (!left_ && prepared_ < minibatches() && window_.size() <= ahead && MayPrepareMore()) {
    const MinibatchIndex index(prepared_++);
    const size_t count = RecordsOf(index.value());
    if (count == 0 || !shard_.Has(index)) continue;
    const size_t first = records_->minibatches[index.value()];
    MinibatchImpl& batch = window_.emplace_back(this, index, first,
                                                std::span(records_->records).subspan(first, count));
    if (!prepare_) continue;
    batch.BeginPrepare();
    prepare_(batch.handle());
    batch.EndPrepare();
  }
}

void MinibatchLoop::SkipEmpty() {
  for (uint32_t minibatch = 0; minibatch < minibatches(); ++minibatch) {
    const MinibatchIndex index(minibatch);
    if (RecordsOf(minibatch) == 0 && shard_.Has(index)) owner_->Skip(index);
  }
}

void MinibatchLoop::Fail(std::string_view reason) {
  if (left_) return;
  left_ = true;
  owner_->FailRun(fmt::format("shard {}: {}", id(), reason));
}

}  // namespace muster::internal
