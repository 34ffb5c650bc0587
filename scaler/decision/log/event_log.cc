#include "scaler/decision/log/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "scaler/decision/log/event_file.h"

namespace muster::scaler {
namespace {

/// `Range`: events with ids that ascend by one.
template <typename Range>
rest::EventList EventsAfter(const Range& events, uint64_t after, uint32_t limit) {
  rest::EventList list{.events = {}, .next_after = after};
  if (events.empty() || after >= events.back().id) return list;
  const uint64_t first = std::max(after + 1, events.front().id);
  for (size_t i = first - events.front().id; i < events.size() && list.events.size() < limit; ++i) {
    list.events.push_back(events[i]);
  }
  if (!list.events.empty()) list.next_after = list.events.back().id;
  return list;
}

template <typename Range>
const rest::Event* FindEvent(const Range& events, uint64_t id) {
  if (events.empty() || id < events.front().id || id > events.back().id) return nullptr;
  return &events[id - events.front().id];
}

template <typename Range>
absl::StatusOr<rest::Explanation> ExplainEvent(const Range& events, uint64_t id) {
  const rest::Event* event = FindEvent(events, id);
  if (event == nullptr) {
    if (events.empty())
      return absl::NotFoundError(fmt::format("there is no event {}: none yet", id));
    return absl::NotFoundError(fmt::format("there is no event {}; there are {} to {}", id,
                                           events.front().id, events.back().id));
  }
  rest::Explanation explanation{.event = *event, .cause = std::nullopt, .effects = {}};
  const rest::Event* cause = FindEvent(events, event->cause_id);
  if (cause != nullptr) explanation.cause = *cause;
  // An effect has a larger id than its cause.
  for (uint64_t i = id + 1; i <= events.back().id; ++i) {
    const rest::Event& later = events[i - events.front().id];
    if (later.cause_id == id) explanation.effects.push_back(later);
  }
  return explanation;
}

absl::StatusOr<std::vector<rest::Event>> ReadAll(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(EventFileContents contents,
                          ReadEventFiles(folder, EventLog::Options{}.events_max));
  if (contents.events.empty()) {
    return absl::NotFoundError(fmt::format(
        "there are no events in {}: no job was run with this state directory", EventFile(folder)));
  }
  return std::move(contents.events);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& folder,
                                                         const Options& options,
                                                         const Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(EventFileContents contents, ReadEventFiles(folder, options.events_max));
  auto log = std::unique_ptr<EventLog>(new EventLog(folder, options, clock));
  log->file_bytes_ = contents.bytes;
  log->damage_ = std::move(contents.damage);
  if (!contents.events.empty()) log->next_id_ = contents.events.back().id + 1;
  const MutexLock lock(&log->mutex_);
  log->events_.assign(std::make_move_iterator(contents.events.begin()),
                      std::make_move_iterator(contents.events.end()));
  return log;
}

rest::Event EventLog::Append(rest::Event event) {
  event = Number(std::move(event));
  const absl::Status written = WriteWaiting();
  // An event is shown after it is on disk, unless the disk accepts nothing.
  Publish(event);
  if (!written.ok() && !failing_) {
    failing_ = true;
    Publish(Number({.kind = "note",
                    .because = fmt::format("events cannot be written and are kept in memory until "
                                           "they can: {}",
                                           Message(written))}));
  }
  if (failing_) kept_ = std::max<uint64_t>(kept_, waiting_.size());
  return event;
}

void EventLog::Flush() {
  if (!failing_ || !WriteWaiting().ok()) return;
  failing_ = false;
  Append({.kind = "note",
          .because =
              fmt::format("events are written again; {} had to wait", std::exchange(kept_, 0))});
}

rest::Event EventLog::Number(rest::Event event) {
  event.id = next_id_++;
  event.wall_us = static_cast<uint64_t>(clock_->Wall().count());
  event = BoundedEvent(std::move(event));
  waiting_.push_back(EventLine(event));
  if (waiting_.size() > options_.events_max) waiting_.pop_front();
  return event;
}

absl::Status EventLog::WriteWaiting() {
  while (!waiting_.empty()) {
    MUSTER_RETURN_IF_ERROR(WriteLine(waiting_.front()));
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status EventLog::WriteLine(const std::string& line) {
  const std::string path = EventFile(folder_);
  if (file_bytes_ > 0 && file_bytes_ + line.size() > options_.file_bytes_max) {
    MUSTER_RETURN_IF_ERROR(RenamePath(path, OldEventFile(folder_)));
    file_bytes_ = 0;
  }
  MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  // A failed attempt has left only the beginning of the same line, so this write replaces it.
  MUSTER_RETURN_IF_ERROR(file.WriteAt(file_bytes_, line));
  MUSTER_RETURN_IF_ERROR(SyncPath(path));
  if (file_bytes_ == 0) {
    MUSTER_RETURN_IF_ERROR(SyncPath(folder_));
  }
  file_bytes_ += line.size();
  return absl::OkStatus();
}

void EventLog::Publish(const rest::Event& event) {
  const MutexLock lock(&mutex_);
  events_.push_back(event);
  if (events_.size() > options_.events_max) events_.pop_front();
}

rest::EventList EventLog::Events(uint64_t after, uint32_t limit) const {
  const MutexLock lock(&mutex_);
  return EventsAfter(events_, after, limit);
}

absl::StatusOr<rest::Explanation> EventLog::Explain(uint64_t id) const {
  const MutexLock lock(&mutex_);
  return ExplainEvent(events_, id);
}

uint64_t EventLog::last_id() const {
  const MutexLock lock(&mutex_);
  return events_.empty() ? 0 : events_.back().id;
}

absl::StatusOr<rest::EventList> ReadEvents(const std::string& folder, uint64_t after,
                                           uint32_t limit) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<rest::Event> events, ReadAll(folder));
  return EventsAfter(events, after, limit);
}

absl::StatusOr<rest::Explanation> ReadExplanation(const std::string& folder, uint64_t id) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<rest::Event> events, ReadAll(folder));
  return ExplainEvent(events, id);
}

}  // namespace muster::scaler
