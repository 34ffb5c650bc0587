#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <utility>

#include "net/ring_stream.h"
#include "tests/net/stream_fixture.h"

namespace muster::net::stream_test {

constexpr size_t kSmallRing = RingMemory::kRingBytesMin;

inline RingMemory Opened(const RingMemory& made) {
  return RingMemory::Open(OwnedFd(::fcntl(made.descriptor(), F_DUPFD_CLOEXEC, 0)), kSmallRing)
      .value();
}

/// One end of shared memory; the test has the memory and the socket of the other one.
class RingEndTest : public ::testing::Test {
 protected:
  explicit RingEndTest(RingStream::Spin spin = {}) : sockets_(ConnectedSockets(&io_)) {
    RingMemory made = RingMemory::Make(kSmallRing).value();
    peer_.emplace(Opened(made));
    stream_ = std::make_unique<RingStream>(std::move(sockets_.first), std::move(made),
                                           RingStream::Side::kMadeIt, spin);
  }
  void Ring() { ASSERT_EQ(::send(sockets_.second.native_handle(), "x", 1, 0), 1); }
  void Await(const Results& results) {
    while (results.empty()) MUSTER_CHECK(io_.run_one() > 0);
  }

  boost::asio::io_context io_{1};
  std::pair<Socket, Socket> sockets_;
  std::optional<RingMemory> peer_;
  std::unique_ptr<RingStream> stream_;
};

}  // namespace muster::net::stream_test
