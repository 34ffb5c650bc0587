#include "kafka/range_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kafka/internal/client.h"
#include "kafka/internal/idle_fetches.h"
#include "kafka/internal/partition_stream.h"

namespace muster::kafka {
namespace {

using internal::Client;
using internal::IdleFetches;
using internal::PartitionStream;

/// How often a reader that waits for another one says so.
constexpr std::chrono::milliseconds kWaitStep{50};

absl::StatusOr<std::shared_ptr<Client>> OpenClient(const ClientConfig& config,
                                                   const RangeReader::Options& options) {
  return Client::Open(RD_KAFKA_CONSUMER, config,
                      {// All topic partitions of a broker share its fetches, one at a time. One
                       // that waits at the end of a log delays the others for this long.
                       {"fetch.wait.max.ms", "10"},
                       {"fetch.error.backoff.ms", "100"},
                       {"queued.max.messages.kbytes",
                        std::to_string(std::max<uint64_t>(options.read_ahead_bytes >> 10, 1))},
                       // With a lower limit, a larger batch would break the connection again and
                       // again. It must arrive, so that its record can be refused.
                       {"receive.message.max.bytes", "2147483647"}},
                      {{"group.id", ""},
                       {"enable.auto.commit", "false"},
                       {"enable.auto.offset.store", "false"},
                       {"enable.partition.eof", "true"},
                       {"allow.auto.create.topics", "false"},
                       {"auto.offset.reset", "error"},
                       {"isolation.level", "read_committed"}});
}

class RangeReaderImpl final : public RangeReader {
 public:
  RangeReaderImpl(ClientConfig config, Options options)
      : config_(std::move(config)),
        options_(options),
        idle_({.most = options.fetched_max, .unused_max = options.unused_max}),
        keeper_([this] { Keep(); }) {}

  ~RangeReaderImpl() override {
    {
      MutexLock lock(&mutex_);
      ended_ = true;
      idle_grew_.SignalAll();
    }
    keeper_.join();
  }

  absl::StatusOr<std::unique_ptr<Records>> Read(const Range& range,
                                                const KeepWaiting& keep_waiting) override {
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<Lane> lane, BorrowOrWait(range, keep_waiting));
      if (!lane->stream.good()) StopSurplus();
      auto records = lane->stream.Read(range, keep_waiting);
      const bool keep = records.ok() && lane->stream.HasMoreAfter(range);
      if (!keep) lane->stream.Stop();
      GiveBack({lane});
      if (!absl::IsAborted(records.status())) return records;
      const std::string trouble(Message(records.status()));
      if (!keep_waiting(trouble)) return absl::CancelledError(trouble);
      Renew(lane->stream.client(), trouble);
    }
  }

  void Expect(std::span<const Range> ranges) override {
    std::vector<std::pair<std::shared_ptr<Lane>, uint64_t>> starting;
    {
      MutexLock lock(&mutex_);
      for (const Range& range : ranges) {
        const absl::StatusOr<std::shared_ptr<Lane>> lane = LaneOf(range);
        if (!lane.ok()) return;
        if ((*lane)->lent || (*lane)->expected || starting.size() >= options_.fetched_max / 2) {
          continue;
        }
        Lend(lane->get());
        starting.emplace_back(*lane, range.begin);
      }
    }
    std::vector<std::shared_ptr<Lane>> started;
    for (const auto& [lane, offset] : starting) {
      lane->expected = lane->stream.GoTo(offset).ok();
      started.push_back(lane);
    }
    GiveBack(started);
    StopSurplus();
  }

 private:
  /// A topic partition of the client. Whoever has it lent uses its stream, without the lock.
  struct Lane {
    Lane(std::shared_ptr<Client> client, const Range& range, const PartitionStream::Options& how)
        : stream(std::move(client), range.topic, range.partition, how) {}
    PartitionStream stream;
    /// It was announced, and nobody has read it since. Belongs to whoever has it lent.
    bool expected = false;
    bool lent = false;
  };

  static IdleFetches::Partition PartitionOf(const Range& range) {
    return {range.topic, range.partition};
  }
  static IdleFetches::Partition PartitionOf(const Lane& lane) {
    return {lane.stream.topic(), lane.stream.partition()};
  }

  /// If another reader has the topic partition, or if a file with a secret is just being replaced,
  /// it waits for that. Of several readers, the one with the first offsets comes first, so that
  /// nothing is fetched twice.
  absl::StatusOr<std::shared_ptr<Lane>> BorrowOrWait(const Range& range,
                                                     const KeepWaiting& keep_waiting) {
    const IdleFetches::Partition partition = PartitionOf(range);
    std::string trouble;
    bool waits = false;
    do {
      MutexLock lock(&mutex_);
      if (!std::exchange(waits, true)) waiting_[partition].insert(range.begin);
      absl::StatusOr<std::shared_ptr<Lane>> lane = LaneOf(range);
      if (lane.ok() && !(*lane)->lent && *waiting_[partition].begin() == range.begin) {
        LeaveWaiting(partition, range.begin);
        Lend(lane->get());
        (*lane)->expected = false;
        return lane;
      }
      trouble = lane.ok() ? "" : std::string(Message(lane.status()));
      given_back_.WaitFor(&mutex_, kWaitStep);
    } while (keep_waiting(trouble));
    MutexLock lock(&mutex_);
    LeaveWaiting(partition, range.begin);
    given_back_.SignalAll();
    return absl::CancelledError(fmt::format("topic '{}', partition {}: the read was cancelled{}{}",
                                            range.topic, range.partition,
                                            trouble.empty() ? "" : ": ", trouble));
  }

  void LeaveWaiting(const IdleFetches::Partition& partition, uint64_t begin)
      MUSTER_REQUIRES(mutex_) {
    const auto waiting = waiting_.find(partition);
    waiting->second.erase(waiting->second.find(begin));
    if (waiting->second.empty()) waiting_.erase(waiting);
  }

  /// Errors are those of opening a client.
  absl::StatusOr<std::shared_ptr<Lane>> LaneOf(const Range& range) MUSTER_REQUIRES(mutex_) {
    if (client_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(client_, OpenClient(config_, options_));
    }
    std::shared_ptr<Lane>& lane = lanes_[PartitionOf(range)];
    if (lane == nullptr) {
      lane = std::make_shared<Lane>(
          client_, range,
          PartitionStream::Options{.read_ahead_bytes = options_.read_ahead_bytes,
                                   .renew_after = options_.renew_after});
    }
    return lane;
  }

  void Lend(Lane* lane) MUSTER_REQUIRES(mutex_) {
    lane->lent = true;
    ++lent_;
    idle_.Remove(PartitionOf(*lane));
  }

  void GiveBack(const std::vector<std::shared_ptr<Lane>>& lanes) {
    MutexLock lock(&mutex_);
    for (const std::shared_ptr<Lane>& lane : lanes) {
      lane->lent = false;
      --lent_;
      // The lane of an earlier client ends with its last user.
      const bool ours = lane->stream.client() == client_;
      if (!ours || !lane->stream.good()) continue;
      if (idle_.empty()) idle_grew_.SignalAll();
      idle_.Add(PartitionOf(*lane), lane->expected, clock_.Now());
    }
    given_back_.SignalAll();
  }

  /// Stops the topic partitions that were not used for long, if there are too many, or for very
  /// long.
  void StopSurplus() {
    std::vector<std::shared_ptr<Lane>> stopping;
    {
      MutexLock lock(&mutex_);
      for (const IdleFetches::Partition& partition : idle_.TakeSurplus(lent_, clock_.Now())) {
        stopping.push_back(lanes_.at(partition));
        Lend(stopping.back().get());
      }
    }
    if (stopping.empty()) return;
    for (const std::shared_ptr<Lane>& lane : stopping) {
      lane->stream.Stop();
      lane->expected = false;
    }
    GiveBack(stopping);
  }

  /// Lets a new client take the place of `old`, unless one did already. It reads secrets anew, and
  /// has nothing of what may be wrong with the old one.
  void Renew(const std::shared_ptr<Client>& old, std::string_view why) {
    std::map<IdleFetches::Partition, std::shared_ptr<Lane>> lanes;  // end without the lock
    MutexLock lock(&mutex_);
    if (client_ != old) return;
    Log(LogLevel::kInfo, "a new Kafka client takes the place of the old one: {}", why);
    client_ = nullptr;
    lanes = std::exchange(lanes_, {});
    for (const auto& [partition, lane] : lanes) idle_.Remove(partition);
  }

  /// The thread's.
  void Keep() {
    while (true) {
      {
        MutexLock lock(&mutex_);
        while (!ended_ && idle_.empty()) idle_grew_.Wait(&mutex_);
        if (!ended_) idle_grew_.WaitFor(&mutex_, options_.unused_max / 2);
        if (ended_) return;
      }
      StopSurplus();
    }
  }

  const ClientConfig config_;
  const Options options_;
  const SystemClock clock_;
  Mutex mutex_;
  CondVar given_back_;
  CondVar idle_grew_;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Client> client_ MUSTER_GUARDED_BY(mutex_);
  std::map<IdleFetches::Partition, std::shared_ptr<Lane>> lanes_ MUSTER_GUARDED_BY(mutex_);
  size_t lent_ MUSTER_GUARDED_BY(mutex_) = 0;
  IdleFetches idle_ MUSTER_GUARDED_BY(mutex_);
  /// The begins of the ranges whose readers wait for the topic partition.
  std::map<IdleFetches::Partition, std::multiset<uint64_t>> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::thread keeper_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RangeReader>> RangeReader::Open(const ClientConfig& config,
                                                               Options options) {
  MUSTER_RETURN_IF_ERROR(CheckConfig(config));
  return std::make_unique<RangeReaderImpl>(config, options);
}

}  // namespace muster::kafka
