#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "master/core/master_core.h"
#include "tests/sim/env.h"
#include "tests/sim/late_news.h"
#include "tests/sim/through_wire.h"
#include "worker_sdk/core/worker_core.h"

namespace muster::sim {

/// What the threads of SessionImpl do between a trainer's real WorkerCore, the master and the
/// servers: the control thread's exchanges, and the data plane's requests.
class WorkerLink {
 public:
  struct Owner {
    ProcessRef process;
    uint32_t slot = 0;
    /// Something has happened. The owner looks at the core, and then calls Carry.
    std::function<void()> changed;
    /// The master refuses the process for good.
    std::function<void()> refused;
    /// An answer was taken.
    std::function<void(const WorkerExchangeReply&)> told;
  };
  /// Shares the random stream of its owner. Both outlive it.
  WorkerLink(Env* env, Rng* rng, Owner owner);

  void Open(sdk::WorkerCore::Options options) { core_.emplace(std::move(options)); }
  /// Null before it is open.
  sdk::WorkerCore* core() { return core_.has_value() ? &*core_ : nullptr; }
  /// Sends what the core wants to send now, and wakes up when it wants to again.
  void Carry();
  /// Registers the tables [first, end) of the workload, one after the other.
  void RegisterTables(size_t first, size_t end, std::function<void()> then);
  /// A minibatch's gradients, as they are pushed now.
  std::shared_ptr<const sdk::RowBatch> PushOf(const TrainBatch& batch) const;
  const std::vector<PartitionId>& order() const { return order_; }

 private:
  TimePoint Now() const { return owner_.process->Local(env_->scheduler.now()); }
  void After(nanoseconds delay, std::function<void()> action) {
    env_->scheduler.After(delay, owner_.process, std::move(action));
  }
  nanoseconds Some(nanoseconds max) {
    return nanoseconds(rng_->Below(static_cast<uint64_t>(max.count()) + 1));
  }
  Endpoint here() const { return WorkerEnd(owner_.slot); }
  // The control thread.
  void WakeControl();
  void Exchange();
  static absl::StatusOr<WorkerExchangeReply> Serve(Env* env, const WorkerExchangeRequest& request,
                                                   MasterCore& core, StepTime at);
  void OnExchanged(absl::StatusOr<WorkerExchangeReply> reply);
  // The data plane.
  void Flush();
  void Send(const sdk::SendRequest& request);
  void Answer(const std::shared_ptr<const sdk::SendRequest>& request, const DataReply& reply);

  Env* const env_;
  Rng* const rng_;
  const Owner owner_;
  LateNews late_news_;
  std::optional<sdk::WorkerCore> core_;
  std::vector<PartitionId> order_;
  MapVersion order_version_;
  TimePoint control_at_ = TimePoint::max(), flush_at_ = TimePoint::max();
};

}  // namespace muster::sim
