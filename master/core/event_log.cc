#include "master/core/event_log.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace muster {

EventLog::EventLog(std::map<uint64_t, EventRecord> events)
    : events_(std::move(events)), collected_(newest()) {}

void EventLog::Add(WallTime wall, MasterEventKind kind, std::string node, std::string_view text) {
  const uint64_t sequence = newest() + 1;
  // A number in the journal is never used for another event.
  MUSTER_CHECK(sequence > collected_);
  events_.emplace_hint(events_.end(), sequence,
                       EventRecord{sequence, wall, std::string(kind.word()), std::move(node),
                                   ValidUtf8(text, kTextBytesMax)});
}

std::vector<EventRecord> EventLog::After(uint64_t after, size_t limit) const {
  std::vector<EventRecord> result;
  for (auto it = events_.upper_bound(after); it != events_.end() && result.size() < limit; ++it) {
    result.push_back(it->second);
  }
  return result;
}

void EventLog::Collect(std::vector<Mutation>* mutations) {
  MUSTER_CHECK(collected_ <= newest());
  for (auto it = events_.upper_bound(collected_); it != events_.end(); ++it) {
    mutations->push_back(it->second);
  }
  collected_ = newest();
  if (events_.size() <= kEventsMax) return;
  const uint64_t last = newest() - kEventsMax;
  events_.erase(events_.begin(), events_.upper_bound(last));
  mutations->push_back(EraseEvents{last});
}

}  // namespace muster
