#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ps/core/control_state.h"
#include "ps/core/lane_reports.h"
#include "ps/core/owned_partitions.h"
#include "tests/sim/env.h"
#include "tests/sim/late_news.h"
#include "tests/sim/through_wire.h"

namespace muster::sim {

/// A parameter server process: real lanes and the real control state. The code around them replaces
/// the threads of ParameterServer and LaneServer.
class SimServer {
 public:
  SimServer(Env* env, ProcessRef process, uint32_t slot, uint64_t start);

  void Start();
  uint32_t slot() const { return slot_; }
  /// 0 before it is registered.
  ServerIncarnation incarnation() const { return incarnation_; }
  const ProcessRef& process() const { return process_; }
  /// Null when it does not serve the partition at that owner epoch.
  const ps::Partition* Find(PartitionId id, OwnerEpoch epoch) const;
  /// It tells the master that it has lost one of its partitions, and serves it until it is told to
  /// own it again: no present server reports this while it lives, but the protocol allows it.
  void LosePartition() { loses_partition_ = true; }

  /// A request of a worker has come in; `answer` is called in this process.
  void OnData(uint32_t lane, std::shared_ptr<const DataMessage> message,
              std::function<void(DataReply)> answer);

 private:
  /// A task of a lane takes so long at most.
  static constexpr nanoseconds kLaneDelay{200'000};
  static constexpr ps::ServedRequest kServed{
      .received_bytes = 1, .sent_bytes = 1, .time = kLaneDelay};
  struct Lane {
    std::unique_ptr<ps::OwnedPartitions> owned;
    TimePoint free_at{};
    bool copying = false;  // an image; the next slice is posted
  };
  /// A request that is served in slices.
  struct Sliced {
    std::shared_ptr<const DataMessage> message;
    std::function<void(DataReply)> answer;
    ps::RequestProgress progress;
    ps::PullReply pull;
    ps::PushReply push;
    bool first = true;
    bool abandoned = false;
    size_t checked = 0;  // parts of the push
  };

  TimePoint Now() const { return process_->Local(env_->scheduler.now()); }
  nanoseconds Some(nanoseconds max) {
    return nanoseconds(rng_.Below(static_cast<uint64_t>(max.count()) + 1));
  }
  nanoseconds Backoff();
  void After(nanoseconds delay, std::function<void()> action) {
    env_->scheduler.After(delay, process_, std::move(action));
  }
  void Register();
  void Begin(const RegisterServerReply& registered);
  // One exchange after another.
  void Report();
  void ReportOf(size_t lane);
  /// Goes on to the exchange, or waits for lanes that owe their report.
  void Collect();
  void Exchange();
  void OnExchanged(const absl::StatusOr<ServerExchangeReply>& answer);
  void WaitForNews(nanoseconds timeout);
  void Wake();
  // Lanes: tasks run in their order, each a little after it was posted.
  void Post(Lane* lane, std::function<void()> task);
  /// Rarely a lane has a large request, or an image, that takes longer than an exchange waits.
  void KeepALaneBusy();
  void Pump(Lane* lane);
  void BeginLoad(Lane* lane, ps::LoadJob job);
  void EndLoad(Lane* lane, const ps::LoadJob& job);
  void BeginWrite(Lane* lane, ps::SnapshotJob job);
  void CountImage(const ps::SnapshotJob& job);
  void WakeIfNews(const Lane& lane);
  DataReply Pull(Lane* lane, const DataMessage& message);
  DataReply Push(Lane* lane, const DataMessage& message);
  static DataReply ReplyOf(ps::PullReply reply);
  /// Of rows that are in the version that was answered still.
  void CheckVersions(Lane* lane, const DataMessage& message, const ps::PullReply& reply);
  void CountSlice(Lane* lane, const Sliced& request, ps::Progress progress);
  void GoOn(Lane* lane, const std::shared_ptr<Sliced>& request);
  void PostSlice(Lane* lane, std::function<void()> task);
  void CopyImage(Lane* lane);
  /// Of the parts from `from` on.
  void CheckPushed(Lane* lane, const DataMessage& message, const ps::PushReply& reply, size_t from);
  void AddMissing(ServerExchangeRequest* request);
  void CountRequest(const ServerExchangeRequest& request);
  static void CountRefused(Env* env, const ServerExchangeRequest& request, const MasterCore& core,
                           bool overtaken);
  bool KnowsAccepted(PartitionId partition, SnapshotNumber number) const;

  Env* const env_;
  const ProcessRef process_;
  const uint32_t slot_;
  const uint64_t start_;
  Rng rng_, torn_, busy_, slices_;
  ServerIncarnation incarnation_;
  std::vector<Lane> lanes_;
  std::optional<ps::ControlState> control_;
  std::optional<ps::LaneReports> collector_;
  std::vector<ps::LaneReport> reports_;  // of the newest exchange
  uint64_t sequence_ = 0;
  bool collecting_ = false;
  milliseconds heartbeat_{200};
  nanoseconds backoff_{milliseconds(50)};
  bool waiting_ = false, news_ = false;
  bool loses_partition_ = false;
  LateNews late_news_;
  uint64_t wait_ = 0;
  int images_free_ = 2;
  TimePoint loader_free_{}, writer_free_{};
  std::map<PartitionId, SnapshotNumber> imaged_;
  std::set<std::pair<PartitionId, SnapshotNumber>> images_, unchanged_;
};

}  // namespace muster::sim
