#include "worker_sdk/session/shard_impl.h"

#include <utility>

namespace muster::internal {

ShardImpl::ShardImpl(SessionImpl* session, SessionImpl::NextResult shard)
    : session_(session),
      loop_(session, this,
            {std::move(shard.shard), shard.reader,
             std::make_shared<const sdk::ShardRecords>(std::move(shard.records))}) {}

ShardImpl::~ShardImpl() {
  loop_.Close();
  if (!loop_.left()) session_->GiveUp(loop_.run());
}

LoopOwner::Next ShardImpl::Start(MinibatchIndex) {
  if (session_->StartMinibatch(loop_.run())) return Next::kRun;
  // If the session failed, the shard is handed back. If the lease is lost, GiveUp does nothing.
  session_->GiveUp(loop_.run());
  return Next::kLost;
}

bool ShardImpl::PushesNothing(const MinibatchImpl& minibatch) {
  if (!loop_.evaluate()) return true;
  session_->FinishEvaluated(minibatch.records().size());
  return false;
}

void ShardImpl::Push(const MinibatchImpl& minibatch, std::shared_ptr<const sdk::RowBatch> batch) {
  session_->CommitMinibatch(loop_.run(), minibatch.index(), minibatch.records().size(),
                            minibatch.Timestamps(), std::move(batch));
}

void ShardImpl::Complete(ShardMetrics metrics) {
  // A run after a restore has only some of the minibatches.
  metrics.records = loop_.records().records.size();
  session_->CompleteShard(loop_.run(), std::move(metrics));
}

void ShardImpl::FailRun(std::string reason) {
  session_->GiveUp(loop_.run(), sdk::ShardFailure{std::move(reason)});
}

void ShardImpl::HandBack(std::string reason) {
  session_->HandBack(loop_.run(), std::move(reason));
}

}  // namespace muster::internal
