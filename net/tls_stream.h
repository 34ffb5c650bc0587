#pragma once

#include <memory>
#include <string_view>

#include "net/byte_stream.h"
#include "net/tls_engine.h"

namespace muster::net {

/// Encrypted bytes over a connected TCP socket. A peer that ends its direction in order gives
/// `asio::error::eof`; a connection that ends without that gives `asio::ssl::error::
/// stream_truncated`. Call Handshake first, and wait for it.
class TlsStream : public ByteStream {
 public:
  using Side = TlsEngine::Side;

  /// `context` is that of TlsEngine. `step_bytes` is about how many bytes are encrypted or
  /// decrypted at a time before other handlers of the loop run.
  TlsStream(Socket socket, ssl_ctx_st* context, Side side, size_t step_bytes,
            const TlsEngine::Options& options = {});
  ~TlsStream() override;

  /// The handshake is the pending read. It has no time limit: to give up, call Close. After an
  /// error, failure() often says more.
  void Handshake(Handler done);
  bool handshake_done() const;
  /// For questions about the peer's certificate, after the handshake.
  ssl_st* native() const;

  void ReadSome(boost::asio::mutable_buffer into, Handler done) override;
  void Read(std::vector<boost::asio::mutable_buffer> into, Handler done) override;
  void ReadOne(boost::asio::mutable_buffer into, Handler done) override;
  /// Reads from the bytes that have already arrived.
  size_t ReadNow(std::span<std::byte> into) override;
  void Write(std::vector<boost::asio::const_buffer> from, Handler done) override;
  std::vector<boost::asio::const_buffer> SpareList() override;
  void ShutdownSend() override;
  /// Closes. If no write is pending and the socket has room, it first ends this direction in order.
  void Close() override;
  bool is_open() const override;
  /// The number of plain bytes. Bytes of the handshake do not count.
  uint64_t bytes_moved() const override;
  std::string_view failure() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::net
