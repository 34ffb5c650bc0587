#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "scaler/model/model.h"

namespace muster::scaler {

/// What happened to a job and why, in order, in memory and on disk. Ids count from 1 within a
/// folder, over restarts of the scaler and over runs.
///
/// An event is on disk before Append returns, so it is there before its action. While the disk
/// accepts nothing, events are kept in memory and written as soon as possible. One note says when
/// that begins, and another one when it is over.
///
/// Thread-safety: Append and Flush belong to one thread. Any thread may call the other functions.
class EventLog {
 public:
  struct Options {
    /// When the file is larger than this, it replaces the old file. So between this many bytes and
    /// twice as many are kept.
    uint64_t file_bytes_max = 8 << 20;
    /// How many of the newest events are kept in memory for readers.
    size_t events_max = 10'000;
  };
  /// Reads the events of `folder`. A note takes the place of an event whose line cannot be read.
  /// `folder` must exist, and no other log may have it open. `clock` gives events their times, and
  /// must outlive the log.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& folder,
                                                        const Options& options, const Clock* clock);

  /// Gives `event` its id and time, cuts it to what can be kept (event_file.h), and writes it.
  /// Returns the event as it is then. Blocks for the disk.
  rest::Event Append(rest::Event event);
  /// Tries again to write the waiting events. Call it about once a second.
  void Flush();

  /// Returns events with ids above `after`, oldest first, at most `limit`.
  rest::EventList Events(uint64_t after, uint32_t limit) const;
  /// Errors: kNotFound if there is no such event, or if it is not kept any more.
  absl::StatusOr<rest::Explanation> Explain(uint64_t id) const;
  /// The id of the newest event; 0 if there is none.
  uint64_t last_id() const;
  /// Says which lines Open could not read, for the log.
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  EventLog(std::string folder, const Options& options, const Clock* clock)
      : folder_(std::move(folder)), options_(options), clock_(clock) {}
  /// Gives it an id and a time, and queues it for writing.
  rest::Event Number(rest::Event event);
  absl::Status WriteWaiting();
  absl::Status WriteLine(const std::string& line);
  void Publish(const rest::Event& event);

  const std::string folder_;
  const Options options_;
  const Clock* const clock_;
  std::vector<std::string> damage_;
  // These belong to the thread that appends.
  uint64_t next_id_ = 1;
  uint64_t file_bytes_ = 0;
  std::deque<std::string> waiting_;  // lines that are not on disk yet
  uint64_t kept_ = 0;                // events that had to wait
  bool failing_ = false;

  mutable Mutex mutex_;
  std::deque<rest::Event> events_ MUSTER_GUARDED_BY(mutex_);  // ids ascend by one
};

/// The same as EventLog::Events and Explain, for a job whose scaler does not run. Errors: kNotFound
/// if `folder` has no events.
absl::StatusOr<rest::EventList> ReadEvents(const std::string& folder, uint64_t after,
                                           uint32_t limit);
absl::StatusOr<rest::Explanation> ReadExplanation(const std::string& folder, uint64_t id);

}  // namespace muster::scaler
