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
  uint64_t offset = 0;               // of the part in the object and in the file
  bool clear = false;                // the file first: what it has belongs to no version
  std::vector<std::string> headers;  // Range and If-Match
};

/// What the head of an answer says about its body.
struct PartHead {
  int http = 0;
  std::string_view etag;
  std::string_view content_range;
};

/// What a caller of PartedRead::Next does.
struct ReadTurn {
  enum class Kind : uint8_t {
    kRequest,  // make the request, then report it by Ended or Failed
    kPause,    // ask again after `pause`
    kIdle,     // ask again after another caller has reported something
    kEnd,
  };
  Kind kind = Kind::kEnd;
  PartRequest request;
  std::chrono::nanoseconds pause{};
};

/// Reads one object by several requests at once, each of a range of bytes. The first answer says
/// how long the object is and which version it is (its entity tag). All other requests are for this
/// version only. If the object is replaced meanwhile, all parts are read again, after requests for
/// the former version have ended. So parts of two versions never mix.
///
/// The object is read by one request if that is all that the service can do: it ignores ranges, or
/// gives no strong entity tag; and if the object is empty, because then no range is in it. Pure;
/// not thread-safe.
class PartedRead {
 public:
  /// `what` begins its errors: "cannot read s3://b/p/x".
  PartedRead(std::string what, uint64_t part_bytes, RetryLimits limits, uint64_t seed);
  ReadTurn Next(TimePoint now);
  /// The head of a successful answer has come. Returns how many bytes its body may have. After an
  /// error, the caller reads no body and reports the error by Failed.
  absl::StatusOr<uint64_t> Began(const PartRequest& request, const PartHead& head, TimePoint now);
  /// The answer has come, and a body of `bytes`.
  void Ended(const PartRequest& request, uint64_t bytes, TimePoint now);
  /// `http` is the status of the answer, 0 if there was none. `asked`: as PartQueue::Failed.
  void Failed(const PartRequest& request, int http, const absl::Status& status,
              std::chrono::nanoseconds asked, TimePoint now, TryTime time = TryTime::kCounts);
  /// Parts of the object, as far as is known.
  size_t parts() const;
  /// Why it ended without the object; OK: it did not.
  const absl::Status& failure() const;

 private:
  uint64_t BytesOf(size_t part) const;
  /// Forgets everything of the current version.
  void Restart();
  void ReadAtOnce();
  void ReadOtherVersion(TimePoint now);

  const std::string what_;
  const uint64_t part_bytes_;
  const RetryLimits limits_;
  const uint64_t seed_;
  PartQueue queue_;
  uint64_t version_ = 0;
  bool at_once_ = false;           // one request for the whole object
  std::optional<uint64_t> bytes_;  // of the object
  std::string etag_;
  size_t in_flight_ = 0;         // requests of this version
  size_t in_flight_before_ = 0;  // of former versions
  std::optional<Retries> versions_;
  absl::Status failure_;
};

}  // namespace muster
