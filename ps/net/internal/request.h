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

/// The blocks of a frame that has come in.
struct FrameBlocks {
  AlignedBuffer directory;
  AlignedBuffer keys;
  AlignedBuffer values;

  size_t size() const { return directory.size() + keys.size() + values.size(); }
  std::string_view directory_text() const {
    return {reinterpret_cast<const char*>(directory.data()), directory.size()};
  }
};

/// kDataLoss when the frame's checksum is not what its header says.
absl::Status CheckChecksum(const wire::Header& header, uint64_t checksum);

/// One request on its way from a whole frame to an encoded answer, in slices: every stage whose
/// work grows with the frame (its checksum, widening, serving, narrowing, the answer's checksum)
/// can be left and taken up again. A connection has one, and uses it again and again. Not
/// thread-safe.
class Request {
 public:
  /// The answer. `values` has the first `value_bytes` of the value block.
  struct Answer {
    wire::Header header;
    std::string directory;
    AlignedBuffer values;
    size_t value_bytes = 0;
    /// Why parts of the request were refused; empty: none was.
    std::string refused;
  };

  /// `handler` and `blocks` must outlive it.
  Request(FrameHandler* handler, FrameBlocks* blocks) : handler_(handler), blocks_(blocks) {}

  /// Begins the request of `header`, whose blocks are whole. They must stay as they are until it
  /// ends. `spare` is memory for the values of the answer.
  void Begin(const wire::Header& header, AlignedBuffer spare);
  /// From Begin to the slice that ends it.
  bool under_work() const { return stage_ != Stage::kNone; }
  /// Goes on. An error ends it, and the connection shall end with it; kDone ends it, too.
  absl::StatusOr<Progress> Go(WorkLimit* work);
  /// The same for a connection that is gone: only what must not be left half done.
  Progress GoAbandoned(WorkLimit* work);
  /// After kDone, once.
  Answer TakeAnswer() { return std::move(answer_); }
  /// Of the request that ended last; null when the handler needs none.
  RequestNotes* notes() const { return notes_.get(); }
  /// Memory that it keeps for the next one.
  AlignedBuffer* widened() { return &widened_; }

 private:
  enum class Stage { kNone, kVerify, kDecode, kWiden, kServe, kNarrow, kSign };

  absl::StatusOr<Progress> GoOn(WorkLimit* work);
  absl::Status Decode(WorkLimit* work);
  bool Widen(WorkLimit* work);
  Progress Serve(WorkLimit* work, bool abandoned);
  void EncodeAnswer();
  bool Narrow(WorkLimit* work);
  /// Adds the rest of `bytes` to the checksum; false: the limit is spent before its end.
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
  size_t done_ = 0;   // bytes or values of this stage
  size_t block_ = 0;  // of kVerify: blocks before this one are summed
  bool first_ = true;
  wire::Header header_;
  wire::ChecksumStream sum_;
  wire::PushIdentity push_;
  wire::Parts parts_;
  AlignedBuffer widened_;  // values of a narrow push as float32
  PullReply pull_reply_;
  PushReply push_reply_;
  Answer answer_;
};

}  // namespace muster::ps
