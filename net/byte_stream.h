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

/// A connection as two streams of bytes: what frames are written to and read from, whatever carries
/// them. One read and one write may be under way at a time. Handlers come on the event loop of the
/// stream, or within Poll, never within the call that they were given to; they keep alive what they
/// need, the stream too. Not thread-safe: one thread at a time, the loop's handlers included.
class ByteStream {
 public:
  using Handler = absl::AnyInvocable<void(const boost::system::error_code& error, size_t bytes)>;

  virtual ~ByteStream() = default;

  /// Reads what has come, one byte at least, into `into`, which is not empty.
  virtual void ReadSome(boost::asio::mutable_buffer into, Handler done) = 0;
  /// Reads until `into` is full.
  virtual void Read(std::vector<boost::asio::mutable_buffer> into, Handler done) = 0;
  /// The same for one buffer: takes no memory for a list of them.
  virtual void ReadOne(boost::asio::mutable_buffer into, Handler done) = 0;
  /// Takes into `into` what is in the stream's own memory by now, perhaps nothing, and says how
  /// many bytes; 0 for a stream without such memory. No read may be under way.
  virtual size_t ReadNow(std::span<std::byte> /*into*/) { return 0; }

  /// How many bytes can be read where they came, so that nobody has to copy them; 0: none.
  virtual size_t lends() const { return 0; }
  /// Waits until the next `bytes` bytes have come, at most lends() of them, and leaves them where
  /// they are. It is the read that is under way until then. Nothing may be borrowed meanwhile.
  virtual void Await(size_t /*bytes*/, Handler /*done*/) { MUSTER_CHECK(false); }
  /// Reads the next `bytes` bytes, not 0, in their place; empty: they have not all come. They stay
  /// there until GiveBack, and so does all that is read after them: until then the peer has only
  /// the rest of the memory. The peer may change them: what must not change between a check and its
  /// use is to be copied. No read may be under way, and nothing borrowed.
  virtual std::span<std::byte> Borrow(size_t /*bytes*/) { return {}; }
  /// What was borrowed is no longer needed.
  virtual void GiveBack() {}

  /// Writes all of `from`, which must stay as it is until then.
  virtual void Write(std::vector<boost::asio::const_buffer> from, Handler done) = 0;
  /// An empty list for the next Write, with the memory of the one before.
  virtual std::vector<boost::asio::const_buffer> SpareList() = 0;
  /// Memory of the stream itself, where the next bytes to be written can be put together, so that
  /// nobody has to copy them there; empty: it has none, or no room, or a write is under way. It
  /// stays until the next Write or Wrote. The peer may see it early, and may change it.
  virtual std::span<std::byte> Room() { return {}; }
  /// The first `bytes` of Room() are written.
  virtual void Wrote(size_t bytes) { MUSTER_CHECK(bytes == 0); }

  /// From now on the caller looks with Poll for what the peer wrote, soon and often, and the peer
  /// need not wake anybody for it. False: this stream cannot be looked at so.
  virtual bool BeginPolling() { return false; }
  /// Goes on with what is under way, and calls the handlers of what that brings to its end, but not
  /// of what these begin: that is for the next Poll. True: something has happened. Between
  /// BeginPolling and EndPolling.
  virtual bool Poll() { return false; }
  /// The event loop looks after the stream again.
  virtual void EndPolling() {}

  /// Nothing more will be written: the peer reads what was, and then the end.
  virtual void ShutdownSend() = 0;
  /// Ends reads and writes that are under way with an error. Idempotent.
  virtual void Close() = 0;
  virtual bool is_open() const = 0;
  /// Bytes read and written so far, those of reads and writes under way too.
  virtual uint64_t bytes_moved() const = 0;
  /// Whether damage on the way is impossible, so that frames need no checksum.
  virtual bool lossless() const { return false; }
  /// What the peer did that no honest one does, if that has ended the stream; else empty.
  virtual std::string_view failure() const { return {}; }
};

using Socket = boost::asio::generic::stream_protocol::socket;

}  // namespace muster::net
