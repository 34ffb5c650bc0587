#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/messages/control.h"
#include "ps/core/owned_partitions.h"
#include "ps/net/lane.h"
#include "ps/net/log_throttle.h"
#include "ps/service/storage.h"
#include "ps/service/work_queue.h"

namespace muster::ps {

/// Limits how many images are in memory over all lanes. Thread-safe.
class ImageSlots {
 public:
  explicit ImageSlots(int count) : free_(count) {}
  bool TryTake() {
    if (free_.fetch_sub(1) > 0) return true;
    free_.fetch_add(1);
    return false;
  }
  void Give() { free_.fetch_add(1); }

 private:
  std::atomic<int> free_;
};

/// The things that the lanes of a server share. All of them are thread-safe and outlive the lanes.
struct LaneContext {
  const Clock* clock = nullptr;
  Storage* storage = nullptr;
  WorkQueue* restorer = nullptr;  // reads snapshots, several at once
  WorkQueue* loader = nullptr;    // fills tables and frees memory
  WorkQueue* writer = nullptr;
  ImageSlots* images = nullptr;
  /// The pause before a failed load or snapshot is retried.
  std::chrono::milliseconds retry_pause{1000};
  /// Call this when there is news for the master.
  std::function<void()> wake;
  /// Call this when an image slot is free again. Every lane then checks for work.
  std::function<void()> pump_all;
};

/// One lane of the server: its sockets, its thread, and the partitions that live on it.
/// Thread-safety: the Post... calls may come from any thread, the rest from the one that made it.
class LaneServer final : public FrameHandler {
 public:
  /// `context` must outlive the lane server.
  LaneServer(LaneOptions options, uint32_t lane, uint32_t lane_count, const LaneContext* context);
  ~LaneServer() override;

  /// See Lane::Listen.
  absl::StatusOr<std::vector<std::string>> Listen();
  /// Begins to serve as the server that the master has `registered`. Call it once.
  void Start(const RegisterServerReply& registered);
  /// Ends the thread; no task runs afterwards. Idempotent.
  void Stop();

  /// See OwnedPartitions::AddTable and SetWarmStart.
  void PostTable(const TableSpec& table);
  void PostWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows);
  void PostCommands(LaneCommands commands);
  /// Calls `done` on the lane's thread with its part of the exchange `sequence`.
  void PostReport(uint64_t sequence, std::function<void(LaneReport)> done);
  /// Begins loads, fills, and snapshots (while image slots are free).
  void PostPump();

  // FrameHandler, on the lane's thread.
  absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello& hello) override;
  std::unique_ptr<RequestNotes> MakeNotes() override { return std::make_unique<RequestProgress>(); }
  Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) override;
  Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) override;
  void OnServed(const ServedRequest& request, RequestNotes* notes) override {
    owned_->CountServed(request, static_cast<const RequestProgress&>(*notes));
  }
  void OnRefused(const Refusal& refusal) override;

 private:
  void Pump();
  /// Checks for work again after the pause of a failed task.
  void PumpAfterPause();
  void BeginLoad(LoadJob job);
  void BeginFill(FillJob job);
  /// One slice of the image that is being copied.
  void CopyImage();
  void BeginWrite(SnapshotJob job);
  /// Gives memory that takes long to free to another thread.
  void DropGarbage();
  void WakeIfNews();
  LaneReport Report(uint64_t sequence);

  const uint32_t lane_;
  const uint32_t lane_count_;
  const LaneContext* const context_;
  // Only the lane's thread uses these, from Start() on.
  RegisterServerReply registered_;
  std::optional<OwnedPartitions> owned_;
  bool copying_ = false;     // an image is being copied; the next slice is posted
  TimePoint traffic_due_{};  // when the next report of traffic is due
  LogThrottle refused_peers_, refused_strangers_;
  Lane net_;
};

}  // namespace muster::ps
