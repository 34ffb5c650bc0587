#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin/admin_client.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/mutex.h"
#include "host/messages.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"

namespace muster {

/// The part of the master's status that decisions need.
MasterView ToView(const JobStatus& status);

/// Talks with the master, so that the deciding thread never waits for it. It asks regularly for the
/// status, fetches new events, and delivers reports and orders in order, however long the master is
/// away. It owns one thread. Thread-safe.
class MasterLink {
 public:
  struct Answer {
    JobStatus status;
    TimePoint asked_at;
    std::vector<MasterEvent> events;  // new since the last answer
    /// All pages of partitions, every few seconds if they are wanted.
    std::vector<PartitionList> partitions;
  };

  /// `clock` outlives the link. It asks for the status every `interval`, and for partitions every
  /// `partitions_interval`; 0 = never.
  MasterLink(std::unique_ptr<AdminClient> client, std::string run_id,
             std::chrono::milliseconds interval, const Clock* clock,
             std::chrono::milliseconds partitions_interval = std::chrono::milliseconds(0));
  ~MasterLink();
  /// Cancels the call in flight and closes the connection; what is queued is not delivered. A
  /// master that ends waits a while for connections that are open.
  void HangUp();

  /// Queues a report and returns its number, from 1. At most kReportsMax reports wait. If there are
  /// more, the oldest is dropped; the master has then been away for thousands of exits.
  uint64_t Tell(const TellMaster& report);
  /// The number of the newest report that the master has answered, even if it refused the report.
  /// All earlier reports were answered, too.
  uint64_t reports_over();
  void AskDrain();
  /// Asks the master to drain one node, with a time limit of `timeout`. The caller repeats it if
  /// necessary.
  void AskDrainNode(const std::string& node, std::chrono::milliseconds timeout);
  /// Asks the master to end the job as FAILED with this reason.
  void AskFail(const std::string& reason);

  /// The answers since the last call, oldest first.
  std::vector<Answer> TakeAnswers();
  /// If the master refused to answer questions since the last call (for example because they lacked
  /// the job's token), the time of the newest of these questions. It shows that the master is
  /// there.
  std::optional<TimePoint> TakeRefusal();
  /// Readable when there are answers, a refusal, or reports_over() has grown.
  int wake_fd() const { return wake_.get(); }

  static constexpr size_t kReportsMax = 10'000;

 private:
  struct Order {
    enum class Kind : uint8_t { kReport, kDrain, kDrainNode, kFail } kind = Kind::kReport;
    v1::ReportNodeRequest report;
    std::string reason;
    std::string node;  // to drain
    std::chrono::milliseconds timeout{0};
    uint64_t number = 0;  // of a report
  };
  uint64_t Enqueue(Order order);
  void Loop();
  /// Delivers the queue. False if the master could not be reached.
  bool Deliver();
  void Poll();
  void NoteRefusal(const absl::Status& status, TimePoint asked_at);
  void PollPartitions(Answer* answer);
  absl::Status Send(const Order& order);
  bool stopping();
  void WaitForWork(std::chrono::milliseconds at_most);
  void WaitForEnd(std::chrono::milliseconds at_most);

  std::unique_ptr<AdminClient> client_;  // null after HangUp
  const std::string run_id_;
  const std::chrono::milliseconds interval_;
  const std::chrono::milliseconds partitions_interval_;
  const Clock* const clock_;
  const WakeFd wake_;

  Mutex mutex_;
  CondVar changed_, stopped_;
  std::deque<Order> orders_ MUSTER_GUARDED_BY(mutex_);
  uint64_t orders_dropped_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t reports_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t reports_over_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::vector<Answer> answers_ MUSTER_GUARDED_BY(mutex_);
  std::optional<TimePoint> refused_at_ MUSTER_GUARDED_BY(mutex_);
  bool stop_ MUSTER_GUARDED_BY(mutex_) = false;

  // These belong to the thread.
  uint64_t events_seen_ = 0;
  std::string refusal_;  // the newest one since the last answer
  std::optional<TimePoint> partitions_at_;
  std::thread thread_;
};

}  // namespace muster
