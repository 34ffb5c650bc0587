#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "net/socket_stream.h"
#include "ps/core/aligned_buffer.h"
#include "ps/net/frame_handler.h"
#include "ps/net/internal/offered_rings.h"
#include "ps/net/internal/request.h"
#include "ps/net/internal/ring_budget.h"
#include "ps/net/internal/spare_buffers.h"
#include "ps/net/lane.h"

namespace muster::ps {

/// What a lane's connections have in common; outlives them and their operations.
struct ConnectionContext {
  FrameHandler* handler = nullptr;
  const LaneLimits* limits = nullptr;
  const Clock* clock = nullptr;
  /// Takes a large buffer that is no longer needed: to free it at once would hold the lane.
  std::function<void(AlignedBuffer)> discard;
  SpareBuffers* spares = nullptr;
  RingBudget* rings = nullptr;
};

/// One peer of a lane: reads frames, lets the handler serve them in slices, and writes the replies.
/// A slice ends after the work that LaneLimits::slice_bytes allows. The next slice is posted, so
/// that the lane's other connections and tasks run in between. Meanwhile nothing is read. Lives as
/// long as an operation of its socket or a slice is in progress. Every member runs on the lane's
/// thread.
class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  /// `context` and what `on_closed` refers to must outlive the connection's operations. `origin`:
  /// where the peer is, for messages.
  PeerConnection(net::Socket socket, std::string origin, const ConnectionContext* context,
                 std::function<void(PeerConnection*)> on_closed);
  ~PeerConnection();
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  /// Begins to read. Once.
  void Start();
  /// Ends the connection if its hello, or its end, is overdue at `now`.
  void EndIfOverdue(TimePoint now);
  /// Closes the socket; outstanding operations end. Idempotent.
  void Close();

 private:
  /// A frame on its way out.
  struct Outgoing {
    std::array<std::byte, wire::kHeaderBytes> header;
    std::string directory;
    AlignedBuffer values;
    size_t value_bytes = 0;
    size_t bytes() const { return header.size() + directory.size() + value_bytes; }
  };
  enum class Phase {
    kHello,    // nothing but a Hello is accepted
    kServing,  // pulls and pushes
    kClosing,  // an error is queued; nothing is read any more
  };

  /// Begins a slice: continues the request in progress, and takes frames from the staging buffer,
  /// until it needs more bytes, must wait for the peer, or the slice ends.
  void Parse();
  /// The next slice, after everything else that the lane has to do.
  void PostSlice();
  void ReadStage();
  /// Whether the staging buffer has a whole header, with what the stream has at once.
  bool HasHeader();
  /// What of the staging buffer is not taken yet moves to its begin.
  void CompactStage();
  /// Takes the next header out of the staging buffer.
  absl::Status TakeHeader();
  /// Sizes the blocks for the header and moves into them what the staging buffer has of them.
  absl::Status BeginBody();
  /// Takes what has come of the blocks. True: they are whole.
  absl::StatusOr<bool> HasBody(WorkLimit* work);
  /// The same of values that stay where they came.
  absl::StatusOr<bool> HasBorrowed();
  /// What is not there yet of the blocks that are copied.
  std::vector<boost::asio::mutable_buffer> RestOfBody();
  /// Waits for the rest of the blocks: straight into place, or until it has come.
  void ReadBody();
  /// A push's values that can stay where they came; 0: they are copied, or there are none.
  size_t BytesToBorrow() const;
  /// Serves the frame that is now complete, or begins to.
  absl::Status Serve();
  absl::Status ServeHello();
  /// Memory to be shared with a peer that takes rings of `wanted` bytes: the size of one, or 0.
  uint32_t OfferRings(size_t wanted);
  /// Hands the memory over, and goes on in it.
  absl::Status EnterRings();
  /// The stream is at its end, or broken.
  void OnStreamError();
  /// One slice of the request under work.
  absl::StatusOr<Progress> ServeRequest(WorkLimit* work);
  /// Memory for the rows of an answer: where the peer will read them, if that can be.
  AlignedBuffer RowMemory();
  absl::Status Answer();
  /// False: the stream has no room of its own for the answer, or the rows lie elsewhere.
  bool AnswerInPlace(const Request::Answer& answer);
  /// The stream may use again what it has lent.
  void GiveBackValues();
  /// Gives back what is too large to be kept for the next frame.
  void Trim(AlignedBuffer* buffer);
  /// The memory of rows that were sent, for the next ones.
  void Keep(AlignedBuffer rows);

  /// Queues a frame; Flush sends it.
  void Send(const wire::Header& header, std::string directory, AlignedBuffer values,
            size_t value_bytes);
  /// The same for a frame that is a directory alone.
  void SendText(wire::Kind kind, std::string directory);
  void SendError(const absl::Status& status);
  std::string PeerName() const;
  /// Starts to write what is queued, unless a write is under way.
  void Flush();
  void Write();
  void OnWritten(size_t frames);
  /// After an error: tells the peer that nothing follows and takes what it still sends, so that the
  /// error is not lost in a reset.
  void Linger();
  bool MustWait() const { return outstanding_bytes_ > context_->limits->outstanding_bytes_max; }

  static constexpr size_t kStageBytes = 16u << 10;
  static constexpr size_t kLingerBytesMax = 64u << 20;

  const boost::asio::any_io_executor executor_;
  OfferedRings rings_;         // nothing is read while they wait
  net::SocketStream* socket_;  // stream_, until it is something else
  std::unique_ptr<net::ByteStream> stream_;
  const std::string origin_;
  const ConnectionContext* const context_;
  std::function<void(PeerConnection*)> on_closed_;
  Phase phase_ = Phase::kHello;
  std::string peer_;                   // as its hello said
  std::optional<TimePoint> deadline_;  // of the hello, or of the end
  bool waiting_ = false;               // stopped reading until the peer takes replies

  // Incoming: stage_[begin_, end_) is received and not yet taken.
  std::array<std::byte, kStageBytes> stage_;
  size_t begin_ = 0;
  size_t end_ = 0;
  wire::Header header_;
  FrameBlocks in_;
  bool in_body_ = false;      // the header is taken, the frame is not served
  size_t to_borrow_ = 0;      // bytes of values that the stream is to lend
  size_t body_received_ = 0;  // of the blocks that are copied
  Request request_;
  std::chrono::nanoseconds request_time_{0};  // of its slices
  size_t answer_bytes_ = 0;                   // of the rows of the last pulls, about

  // Outgoing: the first writing_ frames of out_ are in a write.
  std::deque<Outgoing> out_;
  size_t writing_ = 0;
  uint64_t outstanding_bytes_ = 0;
  size_t lingered_bytes_ = 0;
};

}  // namespace muster::ps
