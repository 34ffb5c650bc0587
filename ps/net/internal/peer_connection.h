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
#include "net/offered_rings.h"
#include "net/ring_budget.h"
#include "net/socket_stream.h"
#include "net/tls_stream.h"
#include "ps/core/aligned_buffer.h"
#include "ps/net/frame_handler.h"
#include "ps/net/internal/request.h"
#include "ps/net/internal/spare_buffers.h"
#include "ps/net/lane.h"

namespace muster::ps {

/// State that a lane's connections share; outlives them and their operations.
struct ConnectionContext {
  FrameHandler* handler = nullptr;
  const LaneLimits* limits = nullptr;
  const Clock* clock = nullptr;
  /// Takes a large buffer that is no longer needed, because freeing it at once would block the
  /// lane.
  std::function<void(AlignedBuffer)> discard;
  SpareBuffers* spares = nullptr;
  net::RingBudget* rings = nullptr;
};

/// One peer of a lane: reads frames, lets the handler serve them in slices, and writes the replies.
/// A slice ends after the work that LaneLimits::slice_bytes allows. The next slice is posted, so
/// that the lane's other connections and tasks run in between. Meanwhile nothing is read. Lives as
/// long as an operation of its socket or a slice is in progress. Every member runs on the lane's
/// thread.
class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  /// `context` and everything that `on_closed` uses must outlive the connection's operations.
  /// `origin`: the peer's address, for messages. `tls`: null if the peer speaks plain text.
  PeerConnection(net::Socket socket, std::string origin, std::shared_ptr<ssl_ctx_st> tls,
                 const ConnectionContext* context, std::function<void(PeerConnection*)> on_closed);
  ~PeerConnection();
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  /// Begins the handshake, or to read. Call it once.
  void Start();
  /// False: it is not known yet who the peer is.
  bool handshake_done() const { return phase_ != Phase::kHandshake; }
  /// Ends the connection because its handshake is not done.
  void GiveUpHandshake(std::string reason);
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
    kHandshake,  // of TLS
    kHello,      // only a Hello is accepted
    kServing,    // pulls and pushes
    kClosing,    // an error is queued; nothing is read any more
  };

  /// Begins a slice: continues the request in progress, and takes frames from the staging buffer,
  /// until it needs more bytes, must wait for the peer, or the slice ends.
  void Parse();
  /// The next slice, after all other work of the lane.
  void PostSlice();
  /// Waits until the peer has shown its certificate.
  void ShakeHands();
  void ReadStage();
  /// True if the staging buffer has a whole header, together with the bytes that the stream has
  /// now.
  bool HasHeader();
  /// Moves the bytes of the staging buffer that were not taken yet to its begin.
  void CompactStage();
  /// Takes the next header from the staging buffer.
  absl::Status TakeHeader();
  /// Sizes the blocks for the header, and moves their bytes from the staging buffer.
  absl::Status BeginBody();
  /// Takes the bytes of the blocks that have arrived. True: the blocks are complete.
  absl::StatusOr<bool> HasBody(WorkLimit* work);
  /// The same for values that stay in place.
  absl::StatusOr<bool> HasBorrowed();
  /// The missing bytes of the blocks that are copied.
  std::vector<boost::asio::mutable_buffer> RestOfBody();
  /// Waits for the rest of the blocks: reads it into place, or waits until it has arrived.
  void ReadBody();
  /// Bytes of a push's values that can stay in place; 0: they are copied, or there are none.
  size_t BytesToBorrow() const;
  /// Serves the complete frame, or begins to.
  absl::Status Serve();
  absl::Status ServeHello();
  /// The size of one ring to share with a peer that accepts rings of `wanted` bytes, or 0.
  uint32_t OfferRings(size_t wanted);
  /// Hands over the memory, and continues in it.
  absl::Status EnterRings();
  /// The stream is at its end, or broken.
  void OnStreamError();
  /// One slice of the present request.
  absl::StatusOr<Progress> ServeRequest(WorkLimit* work);
  /// Memory for the rows of an answer: if possible, where the peer will read them.
  AlignedBuffer RowMemory();
  absl::Status Answer();
  /// False: the stream has no room for the answer, or the rows lie elsewhere.
  bool AnswerInPlace(const Request::Answer& answer);
  /// The stream may use again what it has lent.
  void GiveBackValues();
  /// Gives back buffers that are too large to keep for the next frame.
  void Trim(AlignedBuffer* buffer);
  /// The memory of rows that were sent, for the next ones.
  void Keep(AlignedBuffer rows);

  /// Queues a frame; Flush sends it.
  void Send(const wire::Header& header, std::string directory, AlignedBuffer values,
            size_t value_bytes);
  /// The same for a frame that has only a directory.
  void SendText(wire::Kind kind, std::string directory);
  void SendError(const absl::Status& status);
  std::string PeerName() const;
  /// Starts to write the queued frames, unless a write is pending.
  void Flush();
  void Write();
  void OnWritten(size_t frames);
  /// After an error: ends the output, and reads what the peer still sends, so that the error is not
  /// lost in a reset.
  void Linger();
  bool MustWait() const { return outstanding_bytes_ > context_->limits->outstanding_bytes_max; }

  static constexpr size_t kStageBytes = 16u << 10;
  static constexpr size_t kLingerBytesMax = 64u << 20;

  const boost::asio::any_io_executor executor_;
  net::OfferedRings rings_;              // while they wait, nothing is read
  net::SocketStream* socket_ = nullptr;  // stream_, as long as it is a plain socket
  net::TlsStream* tls_ = nullptr;        // stream_, if it is one
  std::unique_ptr<net::ByteStream> stream_;
  const std::string origin_;
  const ConnectionContext* const context_;
  std::function<void(PeerConnection*)> on_closed_;
  Phase phase_ = Phase::kHello;
  std::string peer_;                   // from its hello
  std::optional<TimePoint> deadline_;  // of the hello, or of the end
  bool waiting_ = false;               // reads nothing until the peer has read replies

  // Incoming: stage_[begin_, end_) is received and not yet taken.
  std::array<std::byte, kStageBytes> stage_;
  size_t begin_ = 0;
  size_t end_ = 0;
  wire::Header header_;
  FrameBlocks in_;
  bool in_body_ = false;      // the header is taken, the frame is not served
  size_t to_borrow_ = 0;      // bytes of values that the stream will lend
  size_t body_received_ = 0;  // of the blocks that are copied
  Request request_;
  std::chrono::nanoseconds request_time_{0};  // of its slices
  size_t answer_bytes_ = 0;                   // the approximate size of recent answers

  // Outgoing: the first writing_ frames of out_ are in a write.
  std::deque<Outgoing> out_;
  size_t writing_ = 0;
  uint64_t outstanding_bytes_ = 0;
  size_t lingered_bytes_ = 0;
};

}  // namespace muster::ps
