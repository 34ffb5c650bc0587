#pragma once

#include <memory>
#include <string>

#include "worker_sdk/session/minibatch_loop.h"
#include "worker_sdk/session/session_impl.h"

namespace muster::internal {

/// A leased shard in a loop's hands: owns the loop over its minibatches, and tells the session how
/// the run goes and ends. Belongs to the loop's thread.
class ShardImpl final : private LoopOwner {
 public:
  /// `session` must outlive it.
  ShardImpl(SessionImpl* session, SessionImpl::NextResult shard);
  /// Hands the shard back when its loop was left early.
  ~ShardImpl() override;
  ShardImpl(const ShardImpl&) = delete;
  ShardImpl& operator=(const ShardImpl&) = delete;

  MinibatchLoop& loop() { return loop_; }

 private:
  bool may_use_tables() const override { return true; }
  void Skip(MinibatchIndex) override {}
  Next Start(MinibatchIndex minibatch) override;
  bool PushesNothing(const MinibatchImpl& minibatch) override;
  void Push(const MinibatchImpl& minibatch, std::shared_ptr<const sdk::RowBatch> batch) override;
  void End(MinibatchIndex, size_t, const ShardMetrics&) override {}
  void Complete(ShardMetrics metrics) override;
  void FailRun(std::string reason) override;
  void HandBack(std::string reason) override;

  SessionImpl* const session_;
  MinibatchLoop loop_;
};

}  // namespace muster::internal
