#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/frames.h"
#include "net/byte_stream.h"

namespace muster::collectives::internal {

/// One connection after its hello: frames in both directions. Payloads are sent and received where
/// they are, without a copy. Belongs to the listener's thread.
class Link : public std::enable_shared_from_this<Link> {
 public:
  /// Must outlive the link, or its Close.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// Where the payload of this frame belongs, which has header.payload_bytes bytes. Nothing: not
    /// known yet, so the link reads on after Resume. An error ends the link.
    virtual absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(
        const FrameHeader& header) = 0;
    /// A part of a large payload has come to its place, and more follows: the peer gets on.
    virtual void OnPart() {}
    /// All of the payload has come to its place.
    virtual absl::Status OnPayload(const FrameHeader& header) = 0;
    /// All of the payload has come, and lies in memory that the peer can write: it stays until this
    /// returns, and may change. For headers of which OnHeader has named an empty place, because
    /// Lends() was true.
    virtual absl::Status OnLent(const FrameHeader& /*header*/,
                                std::span<const std::byte> /*payload*/) {
      return absl::InternalError("no payload was to be lent");
    }
    /// The connection has broken, or its peer broke the rules; the link is closed. Not called after
    /// Close.
    virtual void OnEnded(std::string_view why) = 0;
  };
  using Sent = absl::AnyInvocable<void()>;

  /// `checked`: frames have checksums in both directions.
  Link(std::unique_ptr<net::ByteStream> stream, bool checked, Handler* handler)
      : stream_(std::move(stream)), checked_(checked), handler_(handler) {}

  /// Begins to read.
  void Start() { ReadHeader(); }
  /// True if this payload can be used in place; see OnLent.
  bool Lends(const FrameHeader& header) const {
    return !checked_ && header.payload_bytes > 0 && header.payload_bytes <= stream_->lends();
  }
  /// Asks the handler again for the place of the frame at which the link stopped; does nothing if
  /// it did not stop.
  void Resume();
  /// Sends a frame after those before it. `payload` stays valid until `sent` is called, or until
  /// Close, after which it is not called.
  void Send(FrameHeader header, std::span<const std::byte> payload, Sent sent);
  /// Sends a frame with a message, or without a payload.
  void SendMessage(FrameKind kind, std::string message);
  /// Ends the connection at once; no callback follows, and no memory of a caller is used from then
  /// on. `leave`: tells the peer that this is no error, if the connection can take it. Idempotent.
  void Close(bool leave);
  bool is_open() const { return handler_ != nullptr; }

 private:
  struct Outgoing {
    FrameHeader header;
    std::array<std::byte, kFrameHeaderBytes> header_bytes;
    std::string message;
    std::span<const std::byte> payload;
    Sent sent;
  };
  void WriteQueued();
  void OnWritten();
  void ReadHeader();
  void OnHeader();
  void ReadPayload(std::span<std::byte> left);
  void OnPayload();
  void OnLent();
  void OnTaken(const absl::Status& status);
  void End(std::string_view why);
  /// A handler of the stream, which does nothing after Close.
  template <typename Then>
  net::ByteStream::Handler Guarded(Then then);

  std::unique_ptr<net::ByteStream> stream_;
  const bool checked_;
  Handler* handler_;  // null: closed
  std::deque<std::unique_ptr<Outgoing>> queue_;
  std::vector<std::unique_ptr<Outgoing>> writing_;
  std::array<std::byte, kFrameHeaderBytes> header_bytes_;
  FrameHeader header_;
  std::span<std::byte> place_;
  bool stopped_ = false;  // before the payload of header_
};

}  // namespace muster::collectives::internal
