#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "master/core/durable_state.h"
#include "proto/status/event_kinds.h"

namespace muster {

/// The kind of events for rejected records. If the job fails because of them, the newest of these
/// events is in its reason.
inline constexpr MasterEventKind kRecordRejected = "record-rejected";

/// The newest events of the job, numbered from 1 without gaps. Pure; not thread-safe.
class EventLog {
 public:
  static constexpr size_t kEventsMax = 10'000;
  static constexpr size_t kTextBytesMax = 4'096;

  explicit EventLog(std::map<uint64_t, EventRecord> events);
  /// `node` empty: the job's. Longer texts are cut.
  void Add(WallTime wall, MasterEventKind kind, std::string node, std::string_view text);
  /// Events with sequence > after, oldest first.
  std::vector<EventRecord> After(uint64_t after, size_t limit) const;
  uint64_t newest() const { return events_.empty() ? 0 : events_.rbegin()->first; }
  const std::map<uint64_t, EventRecord>& events() const { return events_; }
  /// Appends what changed since the last call.
  void Collect(std::vector<Mutation>* mutations);

 private:
  std::map<uint64_t, EventRecord> events_;
  /// The changes up to here are in the journal.
  uint64_t collected_ = 0;
};

}  // namespace muster
