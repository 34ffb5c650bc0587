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
  /// The most connections at a time. Each kind has its own limit: every user of the machine can
  /// reach the TCP port, but only the server's user can reach the UNIX socket. A lane without a
  /// UNIX socket accepts as many TCP connections as both limits together.
  uint32_t unix_connections_max = 1024;
  uint32_t tcp_connections_max = 256;
  /// The most TLS handshakes at a time. One more ends the oldest one. So strangers who do not
  /// finish their handshakes cannot keep out a worker, whose handshake takes milliseconds.
  uint32_t handshakes_max = 32;
  /// How much time a peer has from its connection to its hello, and from an error to its end. After
  /// that, the connection is closed.
  std::chrono::milliseconds hello_timeout{5000};
  /// The most bytes of replies that a peer has not read yet. Above this limit, the connection reads
  /// no more requests until the peer has read. One reply alone may exceed it.
  uint64_t outstanding_bytes_max = 64u << 20;
  /// How much work one slice may do before the lane serves other connections: about a millisecond.
  /// Work is counted in bytes that are moved, or could be moved in the same time.
  uint64_t slice_bytes = 4u << 20;
  /// Larger buffers are freed after use instead of kept for the next frame.
  uint64_t buffer_bytes_kept = 16u << 20;
  /// The most bytes of written replies' buffers that the lane keeps for the next replies of all its
  /// connections.
  uint64_t spare_bytes_max = 32u << 20;
  /// The most memory that the lane shares with all peers on this machine together; 0: none.
  uint64_t ring_bytes_max = 64u << 20;
  /// How long a lane polls shared memory for a peer's next request before it sleeps.
  std::chrono::nanoseconds spin_max = std::chrono::microseconds(200);
  /// The size that a UNIX socket's send buffer should have. It holds replies that the peer has not
  /// read yet.
  int unix_buffer_bytes = 4 << 20;
};

struct LaneOptions {
  std::string name;       // "ps-0.1", for logs and the thread
  std::string unix_path;  // empty or longer than net::kUnixPathMax: TCP only
  /// The numeric address at which TCP listens, and the host that peers are told.
  std::string host = "127.0.0.1";
  std::string advertise = "127.0.0.1";
  /// The lane takes the first free one of these ports.
  PortRange ports;
  LaneLimits limits;
  /// Every TCP connection asks for its TLS context. If this is empty, TCP connections are plain
  /// text.
  net::TlsContextSource tls;
  /// Must outlive the lane.
  const Clock* clock = nullptr;
};

/// One lane of a server. It has one thread, one event loop, and its own listening sockets (a UNIX
/// socket and TCP). The thread that reads a request also serves it and answers it, so there is no
/// lock and no hand-off.
///
/// Thread-safety: any thread may call the Post functions and EndOverdue(). Only the thread that
/// made the lane may call the others.
class Lane {
 public:
  /// `handler` must outlive the lane.
  Lane(LaneOptions options, FrameHandler* handler);
  /// Stops.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Binds the sockets and returns their addresses, best first: "unix:/path" (mode 0600; an old
  /// socket at this path is replaced), "advertise:port". Peers may connect from now on. They are
  /// served when the lane is started. Errors name the address.
  absl::StatusOr<std::vector<std::string>> Listen();
  /// Starts the thread. Call once, after Listen().
  void Start();
  /// Runs `task` on the lane's thread, after the earlier tasks. If the lane is stopped first, the
  /// task is dropped.
  void Post(std::function<void()> task);
  /// As Post, after `delay`.
  void PostAfter(std::chrono::nanoseconds delay, std::function<void()> task);
  /// Ends the connections that are overdue by the clock. The lane does so regularly. This function
  /// is for tests whose clock stands still.
  void EndOverdue();
  /// Closes every socket, joins the thread, and removes the UNIX socket. Idempotent.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::ps
