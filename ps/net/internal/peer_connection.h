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

/// The state that a lane's connections share. It outlives them and their operations.
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

/// One peer of a lane. It reads frames, lets the handler serve them in slices, and writes the
/// replies. A slice ends after the work that LaneLimits::slice_bytes allows. The next slice is
/// posted, so that the lane's other connections and tasks run in between. Meanwhile nothing is
/// read. The object lives as long as an operation of its socket or a slice is in progress. Every
/// member runs on the lane's thread.
class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  /// `context`, and everything that `on_closed` uses, must outlive the connection's operations.
  /// `origin` is the peer's address, for messages. `tls` is null if the peer speaks plain text.
  PeerConnection(net::Socket socket, std::string origin, std::shared_ptr<ssl_ctx_st> tls,
                 const ConnectionContext* context, std::function<void(PeerConnection*)> on_closed);
  ~PeerConnection();
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  /// Begins the handshake, or begins to read if there is no TLS. Call it once.
  void Start();
  /// False while it is not known who the peer is.
  bool handshake_done() const { return phase_ != Phase::kHandshake; }
  /// Ends the connection, because it took too long to finish its handshake or another one needs its
  /// place.
  void GiveUpHandshake(std::string reason);
  /// Ends the connection if its hello, or its end, is overdue at `now`.
  void EndIfOverdue(TimePoint now);
  /// Closes the socket. Outstanding operations then end. Idempotent.
  void Close();

 private:
  /// A frame that is to be sent.
  struct Outgoing {
    std::array<std::byte, wire::kHeaderBytes> header;
    std::string directory;
    AlignedBuffer values;
    size_t value_bytes = 0;
    size_t bytes() const { return header.size() + directory.size() + value_bytes; }
  };
  enum class Phase {
    kHandshake,  // the TLS handshake is in progress
    kHello,      // only a Hello is accepted
    kServing,    // pulls and pushes are accepted
    kClosing,    // an error is queued; nothing is read any more
  };

  /// Runs a slice: it continues the request in progress, and takes frames from the staging buffer.
  /// The slice ends when more bytes are needed, when the peer must read first, or when its work is
  /// done.
  void Parse();
  /// Posts the next slice. It runs after all other work of the lane.
  void PostSlice();
  /// Waits until the peer has shown its certificate.
  void ShakeHands();
  void ReadStage();
  /// True if the staging buffer has a whole header. It may first take bytes that the stream has
  /// now.
  bool HasHeader();
  /// Moves the bytes of the staging buffer that were not taken yet to its beginning.
  void CompactStage();
  /// Takes the next header from the staging buffer.
  absl::Status TakeHeader();
  /// Sizes the blocks as the header says, and moves their bytes from the staging buffer to them.
  absl::Status BeginBody();
  /// Takes the bytes of the blocks that have arrived. Returns true when the blocks are complete.
  absl::StatusOr<bool> HasBody(WorkLimit* work);
  /// The same for values that stay in the stream's memory.
  absl::StatusOr<bool> HasBorrowed();
  /// Where the missing bytes of the copied blocks must go.
  std::vector<boost::asio::mutable_buffer> RestOfBody();
  /// Waits for the rest of the blocks: it reads the rest into place, or waits until it has arrived.
  void ReadBody();
  /// How many bytes of a push's values can stay in the stream's memory. 0: they are copied, or
  /// there are none.
  size_t BytesToBorrow() const;
  /// Serves the complete frame, or begins to serve it.
  absl::Status Serve();
  absl::Status ServeHello();
  /// The size of one ring to share with a peer that accepts rings of `wanted` bytes. 0: none is
  /// shared.
  uint32_t OfferRings(size_t wanted);
  /// Gives the shared memory to the peer, and continues in it.
  absl::Status EnterRings();
  /// The stream has ended, or is broken.
  void OnStreamError();
  /// Serves one slice of the present request.
  absl::StatusOr<Progress> ServeRequest(WorkLimit* work);
  /// Returns memory for the rows of an answer. If possible, the peer will read them there.
  AlignedBuffer RowMemory();
  absl::Status Answer();
  /// Returns false if the stream has no room for the answer, or if the rows lie elsewhere.
  bool AnswerInPlace(const Request::Answer& answer);
  /// Allows the stream to use the memory again that it has lent.
  void GiveBackValues();
  /// Frees a buffer that is too large to keep for the next frame.
  void Trim(AlignedBuffer* buffer);
  /// Keeps the memory of rows that were sent for the next rows.
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
  /// After an error: ends the output, and reads what the peer still sends. Otherwise a reset might
  /// drop the error before the peer has read it.
  void Linger();
  bool MustWait() const { return outstanding_bytes_ > context_->limits->outstanding_bytes_max; }

  static constexpr size_t kStageBytes = 16u << 10;
  static constexpr size_t kLingerBytesMax = 64u << 20;

  const boost::asio::any_io_executor executor_;
  net::OfferedRings rings_;              // nothing is read while they wait for the peer
  net::SocketStream* socket_ = nullptr;  // stream_, while it is a plain socket
  net::TlsStream* tls_ = nullptr;        // stream_, if it is a TLS stream
  std::unique_ptr<net::ByteStream> stream_;
  const std::string origin_;
  const ConnectionContext* const context_;
  std::function<void(PeerConnection*)> on_closed_;
  Phase phase_ = Phase::kHello;
  std::string peer_;                   // from its hello
  std::optional<TimePoint> deadline_;  // of the hello, or of the end
  bool waiting_ = false;               // it reads nothing until the peer has read replies

  // Incoming: stage_[begin_, end_) was received, and is not taken yet.
  std::array<std::byte, kStageBytes> stage_;
  size_t begin_ = 0;
  size_t end_ = 0;
  wire::Header header_;
  FrameBlocks in_;
  bool in_body_ = false;      // the header is taken, the frame is not served
  size_t to_borrow_ = 0;      // how many bytes of values the stream will lend
  size_t body_received_ = 0;  // how many bytes of the copied blocks arrived
  Request request_;
  std::chrono::nanoseconds request_time_{0};  // the time of its slices
  size_t answer_bytes_ = 0;                   // the approximate size of recent answers

  // Outgoing: the first writing_ frames of out_ are being written.
  std::deque<Outgoing> out_;
  size_t writing_ = 0;
  uint64_t outstanding_bytes_ = 0;
  size_t lingered_bytes_ = 0;
};

}  // namespace muster::ps
