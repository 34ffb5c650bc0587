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

/// Makes one connection to a process: tries its addresses in turn, encrypts the connection, says
/// hello, and continues in the memory that the peer shares, if it shares some. Belongs to one
/// thread at a time; handlers keep it alive.
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  /// Of the frame that answers a hello.
  static constexpr size_t kHeaderBytes = 64;

  /// What is said on a new connection: a hello, and one frame that answers it.
  class Greeting {
   public:
    virtual ~Greeting() = default;
    /// The bytes of the hello. `same_machine`: over a UNIX socket. `ring_bytes`: the largest ring
    /// that it accepts; 0: none.
    virtual std::string Hello(bool same_machine, uint32_t ring_bytes) = 0;
    /// How many bytes of the answer follow its header.
    virtual absl::StatusOr<size_t> OnHeader(std::span<const std::byte, kHeaderBytes> header) = 0;
    /// The size of the rings that the peer shares; 0: none. kPermissionDenied: no address is tried
    /// after this one.
    virtual absl::StatusOr<uint32_t> OnAnswer(std::string_view body) = 0;
    /// The memory that the peer shares cannot be used.
    virtual void OnUselessRings() {}
  };
  enum class Tries {
    kOnce,         // each address, until one accepts a connection; what fails after that is final
    kUntilTimeout  // again and again, until an answer is right; first at once, then after pauses
  };
  struct Options {
    std::vector<std::string> addresses;  // best first
    Tries tries = Tries::kOnce;
    /// 0: the caller has a limit of its own.
    std::chrono::milliseconds timeout{0};
    SocketSettings socket;
    /// Of connections over TCP. Empty: they are plain text.
    TlsContextSource tls;
    TlsEngine::Options tls_options;
    /// Most bytes that one step of a read or write moves.
    size_t step_bytes = size_t{4} << 20;
    /// Null: the connection is made when it stands.
    std::shared_ptr<Greeting> greeting;
    uint32_t ring_bytes = 0;
    RingStream::Spin spin;
  };
  struct Made {
    std::unique_ptr<ByteStream> stream;
    std::string address;
    bool same_machine = false;
  };
  /// kUnavailable: the text has the address and what went wrong last.
  using Done = std::function<void(absl::StatusOr<Made>)>;

  Connector(boost::asio::any_io_executor executor, Options options, Done done);
  /// Call it once. It may call `done` at once.
  void Start();
  /// Nothing is called from then on. Idempotent.
  void Cancel();
  /// Some process has accepted the connection.
  bool connected() const { return stream_ != nullptr; }
  /// Of the present connection, both ways.
  uint64_t bytes_moved() const { return stream_ == nullptr ? 0 : stream_->bytes_moved(); }
  /// What went wrong last, without the address.
  const std::string& why() const { return why_; }

 private:
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  void Try(size_t index);
  /// This address is of no use; the next one may be.
  void Fail(std::string_view why);
  /// Passes over an address that says nothing of the process.
  void Skip(std::string_view why);
  void OnNoMore();
  void OnTimeout();
  /// Connects to the first that answers, from `next` on.
  void TryEndpoints(std::vector<Endpoint> endpoints, size_t next);
  /// One that does not answer must not take the time of the others.
  void LimitConnect(size_t endpoints_left);
  void OnConnected();
  void Greet();
  void ReadAnswer();
  void OnAnswer();
  void AwaitRings(uint32_t ring_bytes);
  absl::Status EnterRings(uint32_t ring_bytes);
  void Finish(absl::StatusOr<Made> result);
  void FinishMade() { Finish(Made{std::move(stream_), options_.addresses[address_], unix_}); }
  /// Ends what is under way with the present address.
  void Drop();
  /// A handler that does nothing after the end, or in a later try, and fails after an error.
  template <typename Then>
  auto Guarded(Then then);

  const Options options_;
  Done done_;  // null: it has ended
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
