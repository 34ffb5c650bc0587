#include "scaler/rest/event_stream.h"

#include <fmt/format.h>
#include <algorithm>

#include "scaler/model/model_json.h"

namespace muster::scaler::rest {
namespace {

/// Tells a browser how many milliseconds to wait before it connects again.
constexpr std::string_view kBegin = "retry: 1000\n\n";
constexpr std::string_view kHeartbeat = ": heartbeat\n\n";

}  // namespace

std::string FormatServerSentEvent(std::string_view name, std::optional<uint64_t> id,
                                  std::string_view data) {
  const std::string id_line = id ? fmt::format("id: {}\n", *id) : "";
  return fmt::format("{}event: {}\ndata: {}\n\n", id_line, name, data);
}

std::optional<EventStreams::Opened> EventStreams::Open(const StreamRequest& request,
                                                       TimePoint now) {
  if (streams_.size() >= limits_.streams_max) return std::nullopt;
  newest_ = newest_.Next();
  streams_[newest_] = {
      .request = request, .position = request.after, .writing = true, .more = true, .since = now};
  return Opened{newest_, std::string(kBegin)};
}

std::set<uint64_t> EventStreams::Positions() const {
  std::set<uint64_t> positions;
  for (const auto& [id, stream] : streams_) {
    if (!stream.writing && stream.request.events) positions.insert(stream.position);
  }
  return positions;
}

bool EventStreams::WantsStatus() const {
  for (const auto& [id, stream] : streams_) {
    if (!stream.writing && stream.request.status) return true;
  }
  return false;
}

std::vector<EventStreams::Write> EventStreams::Take(const StreamRound& round, TimePoint now) {
  std::vector<Write> writes;
  for (auto& [id, stream] : streams_) {
    if (stream.writing) continue;
    std::string text;
    const auto events = round.events.find(stream.position);
    if (stream.request.events && events != round.events.end()) {
      uint32_t count = 0;
      for (const Event& event : events->second) {
        if (event.id <= stream.position || count == limits_.events_per_write) continue;
        text += FormatServerSentEvent("event", event.id, Dump(ToJson(event)));
        stream.position = event.id;
        ++count;
      }
      stream.more = count == limits_.events_per_write;
    }
    if (stream.request.status && round.status) {
      text += FormatServerSentEvent("status", std::nullopt, *round.status);
    }
    if (text.empty() && now - stream.since >= limits_.heartbeat) text = kHeartbeat;
    if (text.empty()) continue;
    stream.writing = true;
    stream.since = now;
    writes.push_back({id, std::move(text)});
  }
  return writes;
}

bool EventStreams::Written(StreamId id, TimePoint now) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return false;
  at->second.writing = false;
  at->second.since = now;
  return at->second.more && at->second.request.events;
}

bool EventStreams::Writing() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second.writing; });
}

std::vector<StreamId> EventStreams::Stalled(TimePoint now) const {
  std::vector<StreamId> stalled;
  for (const auto& [id, stream] : streams_) {
    if (stream.writing && now - stream.since >= limits_.stall_max) stalled.push_back(id);
  }
  return stalled;
}

}  // namespace muster::scaler::rest
