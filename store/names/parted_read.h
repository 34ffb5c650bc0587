#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/names/part_queue.h"
#include "store/names/retry.h"

namespace muster {

/// One request of a PartedRead.
struct PartRequest {
  uint64_t version = 0;
  size_t part = 0;
  uint64_t offset = 0;  // of the part, in the object and in the file
  bool clear = false;   // clear the file first, because its contents belong to no version
  std::vector<std::string> headers;  // Range and If-Match
};

/// What the head of an answer says about its body.
struct PartHead {
  int http = 0;
  std::string_view etag;
  std::string_view content_range;
};

/// What a caller of PartedRead::Next must do.
struct ReadTurn {
  enum class Kind : uint8_t {
    kRequest,  // make the request, and then report it with Ended or Failed
    kPause,    // ask again after `pause`
    kIdle,     // ask again after another caller has reported something
    kEnd,
  };
  Kind kind = Kind::kEnd;
  PartRequest request;
  std::chrono::nanoseconds pause{};
};

/// Reads one object with several requests at once, each for a range of bytes. The first answer says
/// how long the object is, and which version it is (its entity tag). All other requests are for
/// this version only. If the object is replaced meanwhile, all parts are read again, after the
/// requests for the former version have ended. So parts of two versions are never mixed.
///
/// In three cases, one request reads the whole object: the service ignores ranges, it returns no
/// strong entity tag, or the object is empty and so has no ranges. Pure; not thread-safe.
class PartedRead {
 public:
  /// `what` is the beginning of its error texts: "cannot read s3://b/p/x".
  PartedRead(std::string what, uint64_t part_bytes, RetryLimits limits, uint64_t seed);
  ReadTurn Next(TimePoint now);
  /// The head of a successful answer has arrived. Returns how many bytes its body may have. After
  /// an error, the caller reads no body and reports the error with Failed.
  absl::StatusOr<uint64_t> Began(const PartRequest& request, const PartHead& head, TimePoint now);
  /// The answer has arrived, with a body of `bytes`.
  void Ended(const PartRequest& request, uint64_t bytes, TimePoint now);
  /// `http` is the status of the answer, 0 if there was none. `asked` is the same as in
  /// PartQueue::Failed.
  void Failed(const PartRequest& request, int http, const absl::Status& status,
              std::chrono::nanoseconds asked, TimePoint now, TryTime time = TryTime::kCounts);
  /// The number of parts of the object that are known.
  size_t parts() const;
  /// Why it ended without the object; OK if it did not.
  const absl::Status& failure() const;

 private:
  uint64_t BytesOf(size_t part) const;
  /// Forgets everything about the present version.
  void Restart();
  void ReadAtOnce();
  void ReadOtherVersion(TimePoint now);

  const std::string what_;
  const uint64_t part_bytes_;
  const RetryLimits limits_;
  const uint64_t seed_;
  PartQueue queue_;
  uint64_t version_ = 0;
  bool at_once_ = false;           // one request reads the whole object
  std::optional<uint64_t> bytes_;  // of the object
  std::string etag_;
  size_t in_flight_ = 0;         // requests of this version
  size_t in_flight_before_ = 0;  // requests of former versions
  std::optional<Retries> versions_;
  absl::Status failure_;
};

}  // namespace muster
