#include "store/names/parted_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "store/names/s3_answer.h"

namespace muster {
namespace {

constexpr int kPartialContent = 206;
constexpr int kConditionFailed = 412;
constexpr int kNoSuchRange = 416;

/// Only equal strong tags promise equal bytes.
bool IsStrong(std::string_view etag) {
  return !etag.empty() && !etag.starts_with("W/");
}

}  // namespace

PartedRead::PartedRead(std::string what, uint64_t part_bytes, RetryLimits limits, uint64_t seed)
    : what_(std::move(what)),
      part_bytes_(part_bytes),
      limits_(limits),
      seed_(seed),
      queue_(limits, seed, 1) {}

size_t PartedRead::parts() const {
  if (at_once_ || !bytes_.has_value()) return 1;
  return std::max<size_t>((*bytes_ + part_bytes_ - 1) / part_bytes_, 1);
}

uint64_t PartedRead::BytesOf(size_t part) const {
  return std::min(part_bytes_, *bytes_ - part * part_bytes_);
}

const absl::Status& PartedRead::failure() const {
  return failure_.ok() ? queue_.failure() : failure_;
}

ReadTurn PartedRead::Next(TimePoint now) {
  using Kind = ReadTurn::Kind;
  if (!failure().ok() || queue_.AllDone()) return {.kind = Kind::kEnd, .request = {}};
  if (in_flight_before_ > 0) return {.kind = Kind::kIdle, .request = {}};
  const PartTurn turn = queue_.Next(now);
  if (turn.wait.has_value()) return {.kind = Kind::kPause, .request = {}, .pause = *turn.wait};
  if (!turn.part.has_value()) return {.kind = Kind::kIdle, .request = {}};
  ++in_flight_;
  PartRequest request{.version = version_,
                      .part = *turn.part,
                      .offset = *turn.part * part_bytes_,
                      .clear = !bytes_.has_value(),
                      .headers = {}};
  if (!at_once_) {
    const uint64_t last = request.offset + (bytes_ ? BytesOf(request.part) : part_bytes_) - 1;
    request.headers.push_back(fmt::format("Range: bytes={}-{}", request.offset, last));
    if (!etag_.empty()) request.headers.push_back("If-Match: " + etag_);
  }
  return {.kind = Kind::kRequest, .request = std::move(request)};
}

absl::StatusOr<uint64_t> PartedRead::Began(const PartRequest& request, const PartHead& head,
                                           TimePoint now) {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  if (request.version != version_) return absl::UnavailableError("another version is read now");
  if (at_once_) return kAny;
  const std::optional<ContentRange> range = ParseContentRange(head.content_range);
  if (head.http != kPartialContent || !range.has_value() || range->first != request.offset) {
    if (!bytes_.has_value() && head.http != kPartialContent) {
      at_once_ = true;  // the answer is the whole object
      return kAny;
    }
    ReadAtOnce();
    return absl::UnavailableError("the answer has another range than was asked for");
  }
  if (!bytes_.has_value()) {
    if (range->object_bytes > part_bytes_ && !IsStrong(head.etag)) {
      ReadAtOnce();
      return absl::UnavailableError("the object has no strong entity tag");
    }
    bytes_ = range->object_bytes;
    etag_ = IsStrong(head.etag) ? head.etag : "";
    queue_.GrowTo(parts());
  } else if (range->object_bytes != *bytes_ || (!etag_.empty() && head.etag != etag_)) {
    ReadOtherVersion(now);
    return absl::UnavailableError("the object was replaced");
  }
  return BytesOf(request.part);
}

void PartedRead::Ended(const PartRequest& request, uint64_t bytes, TimePoint now) {
  if (request.version != version_) {
    --in_flight_before_;
    return;
  }
  --in_flight_;
  if (at_once_) {
    bytes_ = bytes;
    return queue_.Done(request.part);
  }
  if (bytes_.has_value() && bytes == BytesOf(request.part)) return queue_.Done(request.part);
  queue_.Failed(
      request.part,
      absl::UnavailableError(fmt::format("{}: only {} bytes of a part came", what_, bytes)), {},
      now, TryTime::kExcused);
}

void PartedRead::Failed(const PartRequest& request, int http, const absl::Status& status,
                        std::chrono::nanoseconds asked, TimePoint now, TryTime time) {
  if (request.version != version_) {
    --in_flight_before_;
    return;
  }
  --in_flight_;
  if (!at_once_ && (http == kConditionFailed || http == kNoSuchRange)) {
    return bytes_.has_value() ? ReadOtherVersion(now) : ReadAtOnce();
  }
  queue_.Failed(request.part, status, asked, now, time);
}

void PartedRead::Restart() {
  ++version_;
  in_flight_before_ += in_flight_;
  in_flight_ = 0;
  bytes_.reset();
  etag_.clear();
  queue_ = PartQueue(limits_, seed_ + version_, 1);
}

void PartedRead::ReadAtOnce() {
  Restart();
  at_once_ = true;
}

void PartedRead::ReadOtherVersion(TimePoint now) {
  Restart();
  if (!versions_.has_value()) versions_.emplace(limits_, now, seed_);
  const auto wait = versions_->After(now);
  if (wait.has_value()) return queue_.PauseUntil(now + *wait);
  failure_ = absl::UnavailableError(
      fmt::format("{}: it was replaced again and again while it was read", what_));
}

}  // namespace muster
