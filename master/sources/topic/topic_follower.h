#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "job/source_spec.h"
#include "kafka/topic.h"
#include "master/core/streams/stream_look.h"
#include "master/sources/source_follower.h"

namespace muster {

/// Follows the topic of one dataset on its own thread: reports what it sees to the master's core,
/// and commits to the brokers the offsets up to which everything is COMMITTED. Thread-safe.
class TopicFollower final : public SourceFollower {
 public:
  struct Options {
    DatasetId dataset;
    std::string name;  // of the dataset
    TopicSpec spec;
    std::string group;
    std::chrono::milliseconds look_every{200};
    std::chrono::milliseconds commit_every{1'000};
    /// The pause after a failed commit, which may have delayed the looks by its timeout.
    std::chrono::milliseconds commit_retry{10'000};
    std::chrono::milliseconds end_time_every{5'000};
    std::chrono::milliseconds retention_every{60'000};
    std::chrono::milliseconds dead_letters_every{5'000};
  };

  TopicFollower(Options options, std::unique_ptr<kafka::Topic> topic, FollowOptions follow);
  ~TopicFollower() override;
  void Start() override;
  void RequestStop() override;
  /// Commits to the brokers once more before it joins.
  void Stop() override;

  /// One look, with its report and its commit; for Start's thread, and for tests.
  void Step();

 private:
  void Run();
  StreamLook Look();
  absl::StatusOr<StreamLook> TryLook();
  void Commit();
  void CheckDeadLetters();

  const Options options_;
  const std::unique_ptr<kafka::Topic> topic_;
  const FollowOptions::Tell tell_;
  const Clock* const clock_;
  // Of the thread.
  FollowOptions::Progress progress_;
  std::map<uint32_t, uint64_t> committed_;
  std::optional<TimePoint> commit_at_, retention_at_, end_time_at_, dead_letters_at_;
  std::optional<std::chrono::milliseconds> retention_;
  std::string commit_trouble_, dead_letter_trouble_;

  Mutex mutex_;
  CondVar wake_;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster
