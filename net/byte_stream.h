#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/check.h"

namespace muster::net {

/// A connection as two streams of bytes, which carry frames. There may be one pending read and one
/// pending write at a time. Handlers are called on the event loop of the stream, or within Poll,
/// but never within the call that got them. They keep everything alive that they need, also the
/// stream. Not thread-safe: one thread at a time, including the loop's handlers.
class ByteStream {
 public:
  using Handler = absl::AnyInvocable<void(const boost::system::error_code& error, size_t bytes)>;

  virtual ~ByteStream() = default;

  /// Reads the bytes that have arrived, at least one, into `into`, which is not empty.
  virtual void ReadSome(boost::asio::mutable_buffer into, Handler done) = 0;
  /// Reads until `into` is full.
  virtual void Read(std::vector<boost::asio::mutable_buffer> into, Handler done) = 0;
  /// The same for one buffer, without memory for a list.
  virtual void ReadOne(boost::asio::mutable_buffer into, Handler done) = 0;
  /// Copies the bytes that have arrived in the stream's own memory into `into`. Returns their
  /// number; 0 if there are none, or if the stream has no such memory. Requires: no pending read.
  virtual size_t ReadNow(std::span<std::byte> /*into*/) { return 0; }

  /// How many bytes can be read in place, without a copy; 0: none.
  virtual size_t lends() const { return 0; }
  /// Waits until the next `bytes` bytes have arrived, at most lends(), and leaves them in place.
  /// Until then, it is the pending read. Requires: nothing is borrowed.
  virtual void Await(size_t /*bytes*/, Handler /*done*/) { MUSTER_CHECK(false); }
  /// Reads the next `bytes` bytes, not 0, in place; empty if they have not all arrived. They stay
  /// there until GiveBack, and so do all bytes that are read after them. Until then, the peer can
  /// use only the rest of the memory. The peer may change the bytes, so copy whatever must not
  /// change between a check and its use. Requires: no pending read, and nothing is borrowed.
  virtual std::span<std::byte> Borrow(size_t /*bytes*/) { return {}; }
  /// The borrowed bytes are no longer needed.
  virtual void GiveBack() {}

  /// Writes all of `from`, which must not change until the handler is called.
  virtual void Write(std::vector<boost::asio::const_buffer> from, Handler done) = 0;
  /// An empty list for the next Write, with the memory of the one before.
  virtual std::vector<boost::asio::const_buffer> SpareList() = 0;
  /// Memory of the stream in which the caller can build the next bytes to write, without a copy.
  /// Empty if the stream has no such memory or no room, or if a write is pending. Valid until the
  /// next Write or Wrote. The peer may see it early, and may change it.
  virtual std::span<std::byte> Room() { return {}; }
  /// The first `bytes` of Room() are written.
  virtual void Wrote(size_t bytes) { MUSTER_CHECK(bytes == 0); }

  /// From now on, the caller checks with Poll, soon and often, what the peer wrote, so the peer
  /// need not wake this process. False: this stream cannot be polled.
  virtual bool BeginPolling() { return false; }
  /// Continues the pending read and write, and calls their handlers if they end. Operations that
  /// these handlers begin wait for the next Poll. True: something has happened. Call it between
  /// BeginPolling and EndPolling.
  virtual bool Poll() { return false; }
  /// The event loop serves the stream again.
  virtual void EndPolling() {}

  /// Nothing more will be written. The peer reads what was written, and then the end.
  virtual void ShutdownSend() = 0;
  /// Ends the pending read and write with an error. Idempotent.
  virtual void Close() = 0;
  virtual bool is_open() const = 0;
  /// Bytes read and written so far, including those of the pending read and write.
  virtual uint64_t bytes_moved() const = 0;
  /// True if bytes cannot be damaged on the way, so frames need no checksum.
  virtual bool lossless() const { return false; }
  /// If the stream ended because the peer broke the rules: how. Otherwise empty.
  virtual std::string_view failure() const { return {}; }
};

using Socket = boost::asio::generic::stream_protocol::socket;

}  // namespace muster::net
