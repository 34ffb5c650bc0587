#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/address.h"
#include "base/clock.h"
#include "net/tls_engine.h"
#include "ps/net/frame_handler.h"

namespace muster::ps {

/// What one lane may use.
struct LaneLimits {
  /// Most connections at a time. Each kind has its own limit, because every user of the machine can
  /// reach the TCP port, but only the server's user the UNIX socket. A lane without a UNIX socket
  /// accepts as many by TCP as both together.
  uint32_t unix_connections_max = 1024;
  uint32_t tcp_connections_max = 256;
  /// Most TLS handshakes at a time. The next one ends the oldest, so that strangers who do not
  /// finish theirs keep out no worker, whose handshake takes milliseconds.
  uint32_t handshakes_max = 32;
  /// From the connection to its hello, and from an error to its end: afterwards it is closed.
  std::chrono::milliseconds hello_timeout{5000};
  /// Bytes of replies that a peer has not read yet. Beyond this limit, the connection reads no more
  /// requests until the peer has read. One reply may exceed it.
  uint64_t outstanding_bytes_max = 64u << 20;
  /// The work of one slice before the lane serves other connections, in bytes moved or the same
  /// cost: about a millisecond.
  uint64_t slice_bytes = 4u << 20;
  /// Buffers larger than this are given back after use instead of kept for the next frame.
  uint64_t buffer_bytes_kept = 16u << 20;
  /// Buffers of written replies that the lane keeps for the next ones, all connections together.
  uint64_t spare_bytes_max = 32u << 20;
  /// Memory that the lane shares with peers on this machine, all of them together; 0: none.
  uint64_t ring_bytes_max = 64u << 20;
  /// How long a lane polls shared memory for a peer's next request before it sleeps.
  std::chrono::nanoseconds spin_max = std::chrono::microseconds(200);
  /// The requested size of a UNIX socket's send buffer, for replies that the peer has not read yet.
  int unix_buffer_bytes = 4 << 20;
};

struct LaneOptions {
  std::string name;       // "ps-0.1", for logs and the thread
  std::string unix_path;  // empty, or longer than net::kUnixPathMax: TCP only
  /// The address at which TCP listens, a number; and the host that peers are told.
  std::string host = "127.0.0.1";
  std::string advertise = "127.0.0.1";
  /// The first free port of these.
  PortRange ports;
  LaneLimits limits;
  /// Of TCP connections, each of which asks for it. Empty: they are plain text.
  net::TlsContextSource tls;
  /// Must outlive the lane.
  const Clock* clock = nullptr;
};

/// One lane of a server: one thread, one event loop, its own listening sockets (a UNIX socket and
/// TCP). The thread that reads a request also serves it and answers it: no lock, no
/// hand-off.
/// Thread-safety: the Post calls and EndOverdue() may come from any thread; the rest by
/// the thread that made the lane.
class Lane {
 public:
  /// `handler` must outlive the lane.
  Lane(LaneOptions options, FrameHandler* handler);
  /// Stops.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Binds the sockets and returns their addresses, best first: "unix:/path" (mode 0600; an old
  /// socket there is replaced), "advertise:port". Peers may connect from now on and are served once
  /// the lane is started. Errors name the address.
  absl::StatusOr<std::vector<std::string>> Listen();
  /// Starts the thread. Call once, after Listen().
  void Start();
  /// Runs `task` on the lane's thread, after the earlier tasks. It is dropped if the lane is
  /// stopped first.
  void Post(std::function<void()> task);
  /// As Post, after `delay`.
  void PostAfter(std::chrono::nanoseconds delay, std::function<void()> task);
  /// Ends the connections that are overdue by the clock. The lane does so regularly; this function
  /// is
  /// for tests whose clock stands still.
  void EndOverdue();
  /// Closes every socket, joins the thread, removes the UNIX socket. Idempotent.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::ps
