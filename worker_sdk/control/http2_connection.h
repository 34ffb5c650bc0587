#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/byte_stream.h"

namespace muster::sdk {

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

/// How a call ended.
struct Http2Answer {
  Http2Fields fields;  // headers and trailers that have arrived
  std::string body;
  /// Why the connection ended before the call did. Empty if the call reached its end.
  std::string broken;
  std::string ended;  // how the server ended the call
  bool too_large = false;
  size_t bytes_max = 0;  // of the body
};

/// The client's end of one HTTP/2 connection (RFC 9113, with nghttp2). Calls may overlap. Belongs
/// to the event loop of its stream. Handlers keep it alive until it is broken.
class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
 public:
  using Done = std::function<void(const Http2Answer& answer)>;

  static std::shared_ptr<Http2Connection> Start(std::unique_ptr<net::ByteStream> stream);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  /// False if the connection is broken, or if the server takes no more calls.
  bool MayCall() const;
  /// True if there was a call on it.
  bool used() const { return used_; }
  /// Sends the fields and the body. The loop calls `done` once, never within Call. If the answer's
  /// body is larger than `answer_bytes_max`, the connection is broken.
  void Call(const Http2Fields& fields, std::string body, size_t answer_bytes_max, Done done);
  /// Closes the connection. Calls without an answer end soon, with this reason. Idempotent.
  void Break(std::string_view why);

 private:
  struct Inside;
  explicit Http2Connection(std::unique_ptr<net::ByteStream> stream);
  void Read();
  void OnBytes(size_t bytes);
  void Write();
  void TellEnded();

  std::unique_ptr<net::ByteStream> stream_;
  std::unique_ptr<Inside> inside_;
  bool used_ = false;
  bool broken_ = false;
  bool writing_ = false;
};

}  // namespace muster::sdk
