#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct ssl_st;
struct ssl_ctx_st;

namespace muster {
class TlsContext;
}

namespace muster::net {

/// Returns the context for a new connection. It follows the certificates on disk, and is never
/// null. The function itself is empty if connections are plain text.
using TlsContextSource = std::function<std::shared_ptr<ssl_ctx_st>()>;
/// Returns the contexts of `context`, which must not be null. Thread-safe, as `context` is.
TlsContextSource SourceOf(std::shared_ptr<TlsContext> context);

/// One end of a TLS connection, without its socket: the caller carries the encrypted bytes between
/// the engine and the peer. Pure: no system call. Not thread-safe.
class TlsEngine {
 public:
  enum class Side { kClient, kServer };
  enum class Step {
    kDone,
    kNeedsBytes,  // from the peer: read them into Room(), call Received or ReceivedEnd, and repeat
    kEnded,       // the peer has ended its direction in order
    kTruncated,   // the connection has ended, but the peer did not say so in TLS
    kFailed,      // failure() says why
  };

  /// The longest plain text of one record.
  static constexpr size_t kRecordBytesMax = 16384;

  /// How many bytes one key encrypts. One key of AES-GCM is safe for 2^24.5 records (RFC 8446,
  /// 5.5), and OpenSSL does not change keys by itself.
  static constexpr uint64_t kKeyBytesMax = uint64_t{1} << 36;

  struct Options {
    /// The protocol that a client asks for by ALPN, for example "h2". If empty, it asks for none.
    std::string_view protocol;
    uint64_t key_bytes_max = kKeyBytesMax;
  };

  /// `context` has the certificates and the rules for the peer's certificate; it may be released
  /// afterwards.
  TlsEngine(ssl_ctx_st* context, Side side) : TlsEngine(context, side, Options{}) {}
  TlsEngine(ssl_ctx_st* context, Side side, const Options& options);
  ~TlsEngine();
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  /// Continues the handshake. There may be output after every step, also after a failure.
  Step Handshake();
  /// Decrypts the next bytes into `into`, which must not be empty: at most one record. `*bytes` is
  /// their number, at least one after kDone. Requires: the handshake is done, or has failed.
  Step Read(std::span<std::byte> into, size_t* bytes);
  /// Encrypts all of `from` into the output. Never waits. If it returns false, failure() says why.
  /// Requires: the handshake is done.
  bool Write(std::span<const std::byte> from);
  /// Tells the peer that nothing follows. Does nothing before the handshake is done.
  void End();

  /// The place for encrypted bytes from the peer. It is never empty after kNeedsBytes. Valid until
  /// Received.
  std::span<std::byte> Room();
  void Received(size_t bytes);
  /// The connection has ended, so no byte follows.
  void ReceivedEnd();

  /// Encrypted bytes for the peer. Valid until the next call that is not const.
  std::span<const std::byte> output() const;
  /// The first `bytes` of the output were sent.
  void Sent(size_t bytes);

  /// True if a read may return bytes although none arrive from the peer.
  bool has_input() const;
  bool handshake_done() const { return handshake_done_; }
  /// For questions about the peer's certificate.
  ssl_st* native() const { return ssl_.get(); }
  /// What was wrong, and what to do (security's TlsErrorText). Empty if nothing was.
  std::string_view failure() const { return failure_; }

 private:
  struct Bytes;
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  /// The meaning of `result`, which an OpenSSL function returned.
  Step StepOf(int result);
  void Fail();

  std::unique_ptr<Bytes> bytes_;  // must not move, because OpenSSL has its address
  std::unique_ptr<ssl_st, Free> ssl_;
  const uint64_t key_bytes_max_;
  uint64_t key_bytes_ = 0;  // bytes that the present key has encrypted
  bool handshake_done_ = false;
  std::optional<Step> over_;  // kTruncated or kFailed
  std::string failure_;
};

}  // namespace muster::net
