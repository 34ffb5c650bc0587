#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/frames.h"
#include "collectives/internal/streams.h"
#include "net/byte_stream.h"
#include "net/tls_engine.h"

namespace muster::collectives::internal {

/// A connection that was made and has said hello.
struct Dialed {
  std::unique_ptr<net::ByteStream> stream;
  std::string address;
  bool checked = false;  // frames have checksums
};

/// Makes one connection: tries the addresses in turn, again and again, until one accepts the hello
/// or the time is over. Belongs to the hub's thread; handlers keep it alive.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  struct Options {
    std::vector<std::string> addresses;  // best first
    Hello hello;
    std::chrono::milliseconds timeout{0};
    net::TlsContextSource tls;
    /// Must outlive the stream.
    const RingSharing* sharing = nullptr;
  };
  /// kUnavailable: the text has the address and what went wrong last.
  using Done = std::function<void(absl::StatusOr<Dialed>)>;

  Dialer(boost::asio::io_context* io, Options options, Done done);
  void Start();
  /// Nothing is called from then on. Idempotent.
  void Cancel();

 private:
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  void TryAddress(size_t index);
  void NextAddress(std::string_view why);
  void TryEndpoints(std::vector<Endpoint> endpoints, size_t next);
  void OnConnected();
  void SendHello();
  void ReadReply();
  void ReadReplyMessage();
  void OnReply(std::string_view message);
  void AwaitRings(uint32_t ring_bytes);
  absl::Status EnterRings(uint32_t ring_bytes);
  /// This address once more, without shared memory.
  void TryWithoutRings();
  void Finish(absl::StatusOr<Dialed> result);
  /// A handler of the stream, which does nothing after the end, and goes on to the next address
  /// after an error.
  template <typename Then>
  net::ByteStream::Handler Guarded(Then then);

  const Options options_;
  Done done_;  // null: it has ended
  net::Socket socket_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer pause_;
  std::chrono::milliseconds next_pause_;
  size_t address_ = 0;
  uint64_t try_ = 0;  // handlers of earlier tries do nothing
  std::unique_ptr<net::ByteStream> stream_;
  net::SocketStream* plain_ = nullptr;  // stream_, if it is one
  bool shares_ = true;
  uint32_t wanted_ring_bytes_ = 0;  // of this connection
  bool checked_ = false;
  std::string error_;
  std::array<std::byte, kFrameHeaderBytes> header_bytes_;
  std::string hello_;
  std::string reply_;
};

}  // namespace muster::collectives::internal
