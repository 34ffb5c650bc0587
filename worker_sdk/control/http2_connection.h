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
  Http2Fields fields;  // headers and trailers that have come
  std::string body;
  /// Its connection ended before it did: how. Empty: it came to its end.
  std::string broken;
  std::string ended;  // how the server ended the call
  bool too_large = false;
  size_t bytes_max = 0;  // of the body
};

/// The client's end of one HTTP/2 connection (RFC 9113, by nghttp2). Calls may overlap. Belongs to
/// the event loop of its stream; handlers keep it alive until it is broken.
class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
 public:
  using Done = std::function<void(const Http2Answer& answer)>;

  static std::shared_ptr<Http2Connection> Start(std::unique_ptr<net::ByteStream> stream);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  /// False: it is broken, or the server takes no more calls.
  bool MayCall() const;
  /// It has had a call.
  bool used() const { return used_; }
  /// Sends the fields and the body. `done` is called once, by the loop, never within Call. A body
  /// over `answer_bytes_max` breaks the connection.
  void Call(const Http2Fields& fields, std::string body, size_t answer_bytes_max, Done done);
  /// Closes the connection. What is not answered ends with this reason, soon. Idempotent.
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
