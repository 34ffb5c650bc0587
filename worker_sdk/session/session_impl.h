#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/usage/process_usage.h"
#include "muster/session.h"
#include "net/spin_budget.h"
#include "store/object_store.h"
#include "worker_sdk/control/control_client.h"
#include "worker_sdk/core/first_alone.h"
#include "worker_sdk/core/loop_times.h"
#include "worker_sdk/core/shortage_backoff.h"
#include "worker_sdk/core/unreachable_servers.h"
#include "worker_sdk/core/unwritten_outputs.h"
#include "worker_sdk/core/worker_core.h"
#include "worker_sdk/net/data_client.h"
#include "worker_sdk/readers/readers.h"
#include "worker_sdk/readers/shard_reader.h"
#include "worker_sdk/session/member_session.h"
#include "worker_sdk/session/output_writer.h"
#include "worker_sdk/session/session_tls.h"
#include "worker_sdk/session/slot_writer.h"
#include "worker_sdk/session/waiting.h"

namespace muster::internal {

/// A worker's session: tells the WorkerCore of events, and carries out its effects. Thread-safe.
///
/// Threads: the trainer's threads call it. The control thread makes the exchanges with the master.
/// DataClient reports answers and timers, on its I/O thread or on a thread that calls it. One mutex
/// guards the core and the data beside it. While it is held, nothing is sent or read, and nothing
/// outside of the session is called.
class SessionImpl final : public MemberSession, private sdk::DataClient::Listener {
 public:
  /// See Session::Connect. The threads run when it returns.
  static absl::StatusOr<std::unique_ptr<SessionImpl>> Connect(const SessionOptions& options);
  /// Hands back the held shards, waits at most 5 s for the master to learn of it, and joins the
  /// threads.
  ~SessionImpl() override;

  /// Registers a table and returns it with its id. An export that it starts from is checked, unless
  /// the master knows the table already. An error makes the session fail.
  absl::StatusOr<TableSpec> Register(absl::StatusOr<TableSpec> spec);

  struct NextResult {
    sdk::ShardRun shard;
    /// The reader of the records. Lives as long as the session.
    sdk::ShardReader* reader = nullptr;
    sdk::ShardRecords records;
  };
  /// See Session::NextShard.
  std::optional<NextResult> NextShard();

  // Of a loop over a shard (ShardImpl).

  /// The loop gets its next minibatch; false: the lease is lost.
  bool StartMinibatch(const RunRef& run);
  bool Holds(const RunRef& run);
  /// Hands the rows of a minibatch to the core, and blocks while too many minibatches are not
  /// acknowledged. `records` is how many it has; `timestamps` are those of the records that have
  /// one, since the Unix epoch.
  void CommitMinibatch(const RunRef& run, MinibatchIndex minibatch, size_t records,
                       std::span<const std::chrono::milliseconds> timestamps,
                       std::shared_ptr<const sdk::RowBatch> batch);
  /// The loop has evaluated a minibatch of so many records.
  void FinishEvaluated(size_t records);
  void CompleteShard(const RunRef& run, ShardMetrics metrics);
  void GiveUp(const RunRef& run, std::optional<sdk::ShardFailure> failure = {});
  /// Hands a shard back whose results could not be written, which is not its fault. If the place of
  /// outputs is away, pauses.
  void HandBack(const RunRef& run, std::string why);

  // LoopSession.
  const HelloResponse& job() const override { return hello_; }
  wire::Encoding encoding() const override { return encoding_; }
  const TableSpec* FindTable(TableId id) override;
  std::shared_ptr<const std::vector<PartitionId>> sending_order() override;
  void EnterLoop() override;
  void LeaveLoop() override;
  sdk::KeepWaiting WaitingFor(const RunRef& run, std::string what, bool leaving) override;
  sdk::DeliveryId StartPull(std::shared_ptr<const sdk::RowBatch> batch) override;
  std::optional<sdk::PullRows> WaitPull(const RunRef& run, sdk::DeliveryId id) override;
  void CancelPull(sdk::DeliveryId id) override;
  void AwaitRoomForGradients(const RunRef& run, uint64_t floats) override;
  absl::Status WriteOutput(const RunRef& run, const std::string& place, const std::string& name,
                           std::string_view bytes) override;
  void ProgramError(std::string message) override;

  // MemberSession; session_group.cc.
  const SessionOptions& options() const override { return options_; }
  const SessionTls& tls() const override { return tls_; }
  uint64_t incarnation() const override { return incarnation_; }
  absl::StatusOr<std::unique_ptr<ObjectStore>> OpenGroupStore() const override;
  absl::Status TakeGroup() override;
  void ReturnGroup(uint64_t calls) override;
  uint64_t group_calls() override;
  void EndGroup() override;
  void WaitsForGroup(bool waits) override;
  absl::StatusOr<StepRecords> ReadStep(const ShardWork& work) override;
  void BeginStepRun(RunNumber run) override;
  void EnterStep(LeaseToken token) override { slot_.Enter(token); }
  void LeaveStep(LeaseToken token) override { slot_.Leave(token); }
  bool StartStepMinibatch(LeaseToken token) override;
  void EndStepMinibatch(size_t records, bool evaluate) override;
  void PushOfStep(const sdk::PushIdentity& push,
                  std::shared_ptr<const sdk::RowBatch> batch) override;
  std::optional<RestoreEpoch> AwaitStepPushes(RunNumber run) override;
  absl::Status status() override;
  bool leaving() const override { return leaving_.load(); }
  absl::Status JudgeAbsence(const absl::Status& answer) override;
  absl::Status AskInterrupted() override;

  /// See Session::Leave.
  void Leave();
  /// See Session::Finish.
  int Finish();

 private:
  /// How long a waiting thread of the trainer may poll for answers before it sleeps.
  static constexpr std::chrono::microseconds kSpinMax{200};

  SessionImpl(SessionOptions options, SessionTls tls, HelloResponse hello, uint64_t incarnation);

  int FinishWork();
  /// The master has said so: no shard is left.
  bool JobIsOver();
  /// Why steps of a group cannot use tables; OK if they can.
  absl::Status MayHaveTables() const;
  absl::StatusOr<TableId> RegisterWithMaster(TableSpec* spec);
  /// Reads a shard for a loop, as long as its lease is held.
  absl::StatusOr<NextResult> ReadShard(const sdk::ShardRun& shard);
  void LeftLoop(LeaseToken token, sdk::FirstAlone::How how) MUSTER_REQUIRES(mutex_);
  /// Hands a shard back because something is short that comes back, and pauses.
  void HandBackAndRest(const RunRef& run, std::string why, sdk::ShortageBackoff* backoff);

  // DataClient::Listener, on the I/O thread or on one that calls the client.
  bool OnReply(const sdk::SendRequest& request, std::span<const wire::PartReply> parts,
               const sdk::ReceivedRows& rows, std::string_view text) override;
  void OnUnanswered(sdk::RequestId id, std::string_view why) override;
  void OnRefused(const sdk::SendRequest& request, std::string_view text) override;
  void OnTimer() override;
  void OnConnected(const sdk::LaneAddress& lane) override;
  void OnCannotConnect(const sdk::LaneAddress& lane, std::string_view why) override;

  /// The work to do after the mutex is released.
  struct Effects {
    sdk::SendRequests requests;
    std::optional<TimePoint> timer;
  };
  Effects TakeEffects() MUSTER_REQUIRES(mutex_);
  void CarryOut(Effects effects) MUSTER_EXCLUDES(mutex_);
  void RunControl();
  void OnExchanged(const absl::StatusOr<WorkerExchangeReply>& reply);
  void FailLocked(absl::Status status) MUSTER_REQUIRES(mutex_);
  /// Wakes the control thread if an exchange is due earlier than it expects.
  void WakeControl() MUSTER_REQUIRES(mutex_);
  /// Waits for a change, for `max` at most, and asks SessionOptions::interrupted if it is time.
  void AwaitChange(std::chrono::nanoseconds max, sdk::WaitingAsks* asks) MUSTER_REQUIRES(mutex_);
  /// Waits until `done()`, and counts the time in `*time`. Lines on stderr name `what`: the first
  /// one after 2 s, and later ones at growing intervals.
  void WaitUntil(absl::FunctionRef<bool()> done, std::string_view what, sdk::TimeSum* time)
      MUSTER_REQUIRES(mutex_);
  /// The same for answers of servers: this thread polls for them as long as that is worthwhile.
  /// `done` is called with the mutex held.
  void WaitForAnswers(absl::FunctionRef<bool()> done, std::string_view what, sdk::TimeSum* time)
      MUSTER_EXCLUDES(mutex_);

  const SessionOptions options_;
  const uint64_t incarnation_;
  const SessionTls tls_;
  const HelloResponse hello_;
  const wire::Encoding encoding_;
  const SystemClock clock_;
  const TimePoint started_;
  const sdk::Readers readers_;
  OutputWriter outputs_;
  sdk::SlotWriter slot_;

  Mutex mutex_;
  CondVar changed_;       // for the trainer's threads
  CondVar control_wake_;  // for the control thread
  sdk::WorkerCore core_ MUSTER_GUARDED_BY(mutex_);
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
  std::map<TableId, TableSpec> tables_ MUSTER_GUARDED_BY(mutex_);  // never removed
  std::shared_ptr<const std::vector<PartitionId>> order_ MUSTER_GUARDED_BY(mutex_);
  MapVersion order_version_ MUSTER_GUARDED_BY(mutex_);
  ProcessUsageMeter usage_meter_;                       // of the control thread
  sdk::LoopTimes times_ MUSTER_GUARDED_BY(mutex_);      // clock readings are taken under the mutex
  std::string last_trouble_ MUSTER_GUARDED_BY(mutex_);  // of master or servers, for waiting lines
  uint32_t waiting_loops_ MUSTER_GUARDED_BY(mutex_) = 0;
  TimePoint control_waits_until_ MUSTER_GUARDED_BY(mutex_){};
  std::atomic<bool> leaving_ = false;
  TimePoint answered_at_ MUSTER_GUARDED_BY(mutex_){};    // by the master
  bool told_to_stop_ MUSTER_GUARDED_BY(mutex_) = false;  // END or DRAIN was seen, or Leave called
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  net::SpinBudget spin_budget_ MUSTER_GUARDED_BY(mutex_){kSpinMax};
  sdk::FirstAlone first_alone_ MUSTER_GUARDED_BY(mutex_);
  sdk::ShortageBackoff read_backoff_ MUSTER_GUARDED_BY(mutex_);
  sdk::ShortageBackoff write_backoff_ MUSTER_GUARDED_BY(mutex_);
  sdk::UnwrittenOutputs unwritten_ MUSTER_GUARDED_BY(mutex_);
  sdk::UnreachableServers unreachable_ MUSTER_GUARDED_BY(mutex_);
  bool has_group_ MUSTER_GUARDED_BY(mutex_) = false;
  uint64_t group_calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::optional<int> finished_ MUSTER_GUARDED_BY(mutex_);  // what Finish returned

  std::unique_ptr<sdk::DataClient> data_;
  std::thread control_;
};

}  // namespace muster::internal
