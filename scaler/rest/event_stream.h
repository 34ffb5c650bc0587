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
  /// Events that one write carries.
  uint32_t events_per_write = 64;
  /// A comment is sent after so long a silence, so that both ends see a lost connection.
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(10);
  /// A client that has not taken a write for so long is dropped.
  std::chrono::nanoseconds stall_max = std::chrono::seconds(10);
};

/// What the job had to say in one round.
struct StreamRound {
  /// Events after a position, for each position that was asked for.
  std::map<uint64_t, std::vector<Event>> events;
  /// The document of topic "status", when it is time for one.
  std::optional<std::string> status;
};

/// All streams of server-sent events: their positions, and what each gets next. A stream is a
/// position in the event log and at most one write in progress. So a client that does not read
/// costs the bytes of one write and no time. Events are asked for when it can take them, and
/// statuses that it cannot take are left out. In the end, it is dropped.
///
/// Pure; a value with one owner. Source of the format: WHATWG HTML, "Server-sent events".
class EventStreams {
 public:
  explicit EventStreams(StreamLimits limits) : limits_(limits) {}

  /// A new stream, and what begins it; nothing when there are too many.
  struct Opened {
    StreamId id;
    std::string text;
  };
  std::optional<Opened> Open(const StreamRequest& request, TimePoint now);
  void Close(StreamId id) { streams_.erase(id); }
  size_t size() const { return streams_.size(); }

  /// Positions from which streams that can take a write want events.
  std::set<uint64_t> Positions() const;
  /// Whether some stream that can take a write wants statuses.
  bool WantsStatus() const;

  struct Write {
    StreamId id;
    std::string text;
  };
  /// What to write now. Each stream named is busy until Written().
  std::vector<Write> Take(const StreamRound& round, TimePoint now);
  /// The write is done. True: there may be more events for it already.
  bool Written(StreamId id, TimePoint now);
  /// A write is under way on some stream.
  bool Writing() const;
  /// Streams whose write has not been taken for too long; they are to be closed.
  std::vector<StreamId> Stalled(TimePoint now) const;

 private:
  struct Stream {
    StreamRequest request;
    uint64_t position = 0;
    bool writing = false;
    /// The last write had as many events as one may.
    bool more = false;
    /// When the last write began, or ended.
    TimePoint since;
  };

  StreamLimits limits_;
  StreamId newest_;
  std::map<StreamId, Stream> streams_;
};

/// "event: NAME", with an id if there is one; `data` has no line break.
std::string FormatServerSentEvent(std::string_view name, std::optional<uint64_t> id,
                                  std::string_view data);

}  // namespace muster::scaler::rest
