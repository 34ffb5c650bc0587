#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"
#include "scaler/model/model.h"
#include "scaler/rest/http_message.h"

namespace muster::scaler::rest {

using StreamId = StrongId<struct StreamIdTag>;

struct StreamLimits {
  size_t streams_max = 16;
  /// The most events in one write.
  uint32_t events_per_write = 64;
  /// After this much silence, a comment is sent, so that both ends notice a lost connection.
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(10);
  /// A client that has not taken a write for this long is dropped.
  std::chrono::nanoseconds stall_max = std::chrono::seconds(10);
};

/// What the job answered in one round.
struct StreamRound {
  /// For each position that was asked for, the events after it.
  std::map<uint64_t, std::vector<Event>> events;
  /// The document of topic "status", if it is time for one.
  std::optional<std::string> status;
};

/// All streams of server-sent events. A stream is a position in the event log and at most one write
/// in progress. So a client that does not read costs the bytes of one write and no time. The job is
/// asked for a stream's events only when the stream can take them. Statuses that it cannot take are
/// skipped. A client that does not read for too long is dropped.
///
/// Pure; a value with one owner. Source of the format: WHATWG HTML, "Server-sent events".
class EventStreams {
 public:
  explicit EventStreams(StreamLimits limits) : limits_(limits) {}

  /// Opens a stream, and returns its first bytes. None if there are too many streams.
  struct Opened {
    StreamId id;
    std::string text;
  };
  std::optional<Opened> Open(const StreamRequest& request, TimePoint now);
  void Close(StreamId id) { streams_.erase(id); }
  size_t size() const { return streams_.size(); }

  /// The positions after which streams want events. Only streams that can take a write count.
  std::set<uint64_t> Positions() const;
  /// True if some stream that can take a write wants statuses.
  bool WantsStatus() const;

  struct Write {
    StreamId id;
    std::string text;
  };
  /// What to write now. Each stream in the result is busy until Written().
  std::vector<Write> Take(const StreamRound& round, TimePoint now);
  /// Call it when a write is done. Returns true if there may already be more events for the stream.
  bool Written(StreamId id, TimePoint now);
  /// True if a write is in progress on some stream.
  bool Writing() const;
  /// Streams whose write has taken too long. Close them.
  std::vector<StreamId> Stalled(TimePoint now) const;

 private:
  struct Stream {
    StreamRequest request;
    uint64_t position = 0;
    bool writing = false;
    /// The last write was full, so there may be more events.
    bool more = false;
    /// When the last write began or ended.
    TimePoint since;
  };

  StreamLimits limits_;
  StreamId newest_;
  std::map<StreamId, Stream> streams_;
};

/// Returns "event: NAME" and the data, with an id if there is one. `data` must have no line break.
std::string FormatServerSentEvent(std::string_view name, std::optional<uint64_t> id,
                                  std::string_view data);

}  // namespace muster::scaler::rest
