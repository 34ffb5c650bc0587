#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "net/endpoints.h"
#include "net/ring_stream.h"
#include "net/socket_stream.h"
#include "net/tls_engine.h"

namespace muster::net {

/// Makes one connection to a process. It tries the process's addresses in turn, encrypts the
/// connection, and sends a hello. If the peer shares memory, the connection continues there.
/// Belongs to one thread at a time. Handlers keep it alive.
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  /// The size of the header of the frame that answers a hello.
  static constexpr size_t kHeaderBytes = 64;

  /// The first messages on a new connection: a hello, and one frame that answers it.
  class Greeting {
   public:
    virtual ~Greeting() = default;
    /// The bytes of the hello. `same_machine` means that the connection is a UNIX socket.
    /// `ring_bytes` is the largest ring that it accepts; 0: none.
    virtual std::string Hello(bool same_machine, uint32_t ring_bytes) = 0;
    /// Returns how many bytes of the answer follow its header.
    virtual absl::StatusOr<size_t> OnHeader(std::span<const std::byte, kHeaderBytes> header) = 0;
    /// Returns the size of the rings that the peer shares; 0: none. After kPermissionDenied, no
    /// other address is tried.
    virtual absl::StatusOr<uint32_t> OnAnswer(std::string_view body) = 0;
    /// The memory that the peer shares cannot be used.
    virtual void OnUselessRings() {}
  };
  enum class Tries {
    kOnce,         // each address, until one accepts a connection; later errors are final
    kUntilTimeout  // again and again, until an answer is right; at first without a pause
  };
  struct Options {
    std::vector<std::string> addresses;  // best first
    Tries tries = Tries::kOnce;
    /// If 0, the caller has a limit of its own.
    std::chrono::milliseconds timeout{0};
    SocketSettings socket;
    /// For connections over TCP. If empty, they are plain text.
    TlsContextSource tls;
    TlsEngine::Options tls_options;
    /// The most bytes that one step of a read or write moves.
    size_t step_bytes = size_t{4} << 20;
    /// If null, nothing is said on the connection: it is complete once it is connected and
    /// encrypted.
    std::shared_ptr<Greeting> greeting;
    uint32_t ring_bytes = 0;
    RingStream::Spin spin;
  };
  struct Made {
    std::unique_ptr<ByteStream> stream;
    std::string address;
    bool same_machine = false;
  };
  /// Errors: kUnavailable; the text has the address and the last problem.
  using Done = std::function<void(absl::StatusOr<Made>)>;

  Connector(boost::asio::any_io_executor executor, Options options, Done done);
  /// Call it once. It may call `done` at once.
  void Start();
  /// After this, nothing is called any more. Idempotent.
  void Cancel();
  /// True if some process has accepted the connection.
  bool connected() const { return stream_ != nullptr; }
  /// Bytes of the present connection, in both directions.
  uint64_t bytes_moved() const { return stream_ == nullptr ? 0 : stream_->bytes_moved(); }
  /// The last problem, without the address.
  const std::string& why() const { return why_; }

 private:
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  void Try(size_t index);
  /// This address does not work, so the next one is tried.
  void Fail(std::string_view why);
  /// Skips an address that says nothing about the process.
  void Skip(std::string_view why);
  void OnNoMore();
  void OnTimeout();
  /// Connects to the first endpoint that answers, beginning with `next`.
  void TryEndpoints(std::vector<Endpoint> endpoints, size_t next);
  /// Limits the time for one endpoint, so that one without an answer does not use up the time of
  /// the others.
  void LimitConnect(size_t endpoints_left);
  void OnConnected();
  void Greet();
  void ReadAnswer();
  void OnAnswer();
  void AwaitRings(uint32_t ring_bytes);
  absl::Status EnterRings(uint32_t ring_bytes);
  void Finish(absl::StatusOr<Made> result);
  void FinishMade() { Finish(Made{std::move(stream_), options_.addresses[address_], unix_}); }
  /// Ends all operations with the present address.
  void Drop();
  /// A handler that fails after an error, and does nothing after the end or in a later try.
  template <typename Then>
  auto Guarded(Then then);

  const Options options_;
  Done done_;  // null if it has ended
  Socket socket_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer pause_;  // before the addresses are tried again, or of one endpoint
  uint32_t rounds_ = 0;              // through all addresses
  size_t address_ = 0;
  uint64_t try_ = 0;
  std::unique_ptr<ByteStream> stream_;  // once it is connected
  SocketStream* plain_ = nullptr;       // stream_, if it is one
  bool unix_ = false;
  bool shares_ = true;
  std::string error_;
  std::string why_;
  std::string hello_;
  std::array<std::byte, kHeaderBytes> header_;
  std::string body_;
};

}  // namespace muster::net
