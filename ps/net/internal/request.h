#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/work_limit.h"
#include "proto/wire/checksum_stream.h"
#include "proto/wire/frame.h"
#include "ps/core/aligned_buffer.h"
#include "ps/net/frame_handler.h"

namespace muster::ps {

/// The blocks of a received frame.
struct FrameBlocks {
  AlignedBuffer directory;
  AlignedBuffer keys;
  AlignedBuffer values;

  size_t size() const { return directory.size() + keys.size() + values.size(); }
  std::string_view directory_text() const {
    return {reinterpret_cast<const char*>(directory.data()), directory.size()};
  }
};

/// kDataLoss if the frame's checksum differs from its header.
absl::Status CheckChecksum(const wire::Header& header, uint64_t checksum);

/// Processes one request, from a complete frame to an encoded answer, in slices. Some stages cost
/// more for a larger frame: its checksum, widening, serving, narrowing, the answer's checksum. All
/// of these can be interrupted and continued. A connection has one object and uses it again. Not
/// thread-safe.
class Request {
 public:
  /// The answer. `values` has the first `value_bytes` of the value block.
  struct Answer {
    wire::Header header;
    std::string directory;
    AlignedBuffer values;
    size_t value_bytes = 0;
    /// Why parts of the request were refused. Empty if none was.
    std::string refused;
  };

  /// `handler` and `blocks` must outlive this object.
  Request(FrameHandler* handler, FrameBlocks* blocks) : handler_(handler), blocks_(blocks) {}

  /// Begins the request of `header`. Its blocks are complete, and must not change until the request
  /// ends. `spare` is memory for the values of the answer.
  void Begin(const wire::Header& header, AlignedBuffer spare);
  /// True from Begin until the slice that ends the request.
  bool under_work() const { return stage_ != Stage::kNone; }
  /// Continues the request. An error ends it, and the caller must end the connection. kDone also
  /// ends it.
  absl::StatusOr<Progress> Go(WorkLimit* work);
  /// As Go, for a connection that is gone. It completes only what must not stay half done.
  Progress GoAbandoned(WorkLimit* work);
  /// Returns the answer. Call it once after kDone.
  Answer TakeAnswer() { return std::move(answer_); }
  /// The notes of the last request; null if the handler needs none.
  RequestNotes* notes() const { return notes_.get(); }
  /// The memory that it keeps for the next request.
  AlignedBuffer* widened() { return &widened_; }

 private:
  enum class Stage { kNone, kVerify, kDecode, kWiden, kServe, kNarrow, kSign };

  absl::StatusOr<Progress> GoOn(WorkLimit* work);
  absl::Status Decode(WorkLimit* work);
  bool Widen(WorkLimit* work);
  Progress Serve(WorkLimit* work, bool abandoned);
  void EncodeAnswer();
  bool Narrow(WorkLimit* work);
  /// Adds the rest of `bytes` to the checksum. Returns false if the limit was spent before the end.
  bool Sum(std::span<const std::byte> bytes, WorkLimit* work);
  void Enter(Stage stage) {
    stage_ = stage;
    done_ = 0;
  }
  bool pulls() const { return header_.kind == wire::Kind::kPull; }

  FrameHandler* const handler_;
  FrameBlocks* const blocks_;
  std::unique_ptr<RequestNotes> notes_;
  Stage stage_ = Stage::kNone;
  size_t done_ = 0;   // finished bytes or values of this stage
  size_t block_ = 0;  // in kVerify: the checksum has the blocks before this one
  bool first_ = true;
  wire::Header header_;
  wire::ChecksumStream sum_;
  wire::PushIdentity push_;
  wire::Parts parts_;
  AlignedBuffer widened_;  // the values of a narrow push, as float32
  PullReply pull_reply_;
  PushReply push_reply_;
  Answer answer_;
};

}  // namespace muster::ps
