#include "master/core/event_log.h"

#include <utility>

namespace muster {

std::string CutText(std::string text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

EventLog::EventLog(std::map<uint64_t, EventRecord> events)
    : events_(std::move(events)), collected_(newest()) {}

void EventLog::Add(WallTime wall, std::string kind, std::string node, std::string text) {
  text = CutText(std::move(text), kTextBytesMax);
  const uint64_t sequence = newest() + 1;
  events_.emplace_hint(
      events_.end(), sequence,
      EventRecord{sequence, wall, std::move(kind), std::move(node), std::move(text)});
}

std::vector<EventRecord> EventLog::After(uint64_t after, size_t limit) const {
  std::vector<EventRecord> result;
  for (auto it = events_.upper_bound(after); it != events_.end() && result.size() < limit; ++it) {
    result.push_back(it->second);
  }
  return result;
}

void EventLog::Collect(std::vector<Mutation>* mutations) {
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
