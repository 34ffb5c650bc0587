#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/frames.h"
#include "collectives/internal/streams.h"
#include "net/connector.h"

namespace muster::collectives::internal {

/// A connection that was made and has said hello.
struct Dialed {
  std::unique_ptr<net::ByteStream> stream;
  std::string address;
  bool checked = false;  // frames have checksums
};

struct DialOptions {
  std::vector<std::string> addresses;  // best first
  Hello hello;
  std::chrono::milliseconds timeout{0};
  net::TlsContextSource tls;
  /// Must outlive the stream.
  const RingSharing* sharing = nullptr;
};

/// Connects to another member: its addresses again and again, until one accepts the hello or the
/// time is over. `done` is called later, on the listener's thread, with kUnavailable after an
/// error: the text has the address and what went wrong last.
std::shared_ptr<net::Connector> Dial(boost::asio::io_context* io, DialOptions options,
                                     std::function<void(absl::StatusOr<Dialed>)> done);

}  // namespace muster::collectives::internal
