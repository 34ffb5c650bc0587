#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/address.h"
#include "base/clock.h"
#include "collectives/state_provider.h"
#include "net/tls_engine.h"

namespace muster::collectives {

namespace internal {
class ListenerState;
}

struct ListenerOptions {
  std::string job_id;
  /// This process, as the master names it.
  std::string worker;
  uint64_t incarnation = 0;
  std::string unix_path;  // empty, or longer than net::kUnixPathMax: TCP only
  /// TCP listens at the address `host`, a number; if it is empty, there is no TCP. Others are told
  /// `advertise`.
  std::string host = "127.0.0.1";
  std::string advertise = "127.0.0.1";
  /// TCP listens at the first free port of these.
  PortRange ports;
  /// The TLS of TCP connections that others make, and of those that this process makes. If it is
  /// empty, they are plain text.
  net::TlsContextSource tls_server;
  net::TlsContextSource tls_client;
  /// How long a connection may take until its hello is complete.
  std::chrono::milliseconds hello_timeout{5'000};
  /// How many connections there may be that have not said hello, whose attempt has not begun here,
  /// or that belong to learners. The next one is refused.
  uint32_t strangers_max = 256;
  /// How much memory this process shares with all those together that connect over the UNIX socket.
  /// If it is 0, this process shares none, and uses none that others share.
  size_t ring_bytes_max = 64u << 20;
  /// Gives states and sums to learners; may be null. Must outlive the listener.
  StateProvider* provider = nullptr;
};

/// Where a member of a group is reached by others, and the thread that serves all its connections.
/// A connection says hello with the job, and either the attempt and both ranks, or that it is a
/// learner's; what does not fit is refused with a text. A hello of an attempt that has not begun
/// here waits for its Reducer.
/// Only the thread that made it may use it, apart from what Reducer and StateClient do with it.
class Listener {
 public:
  /// Binds the sockets and starts the thread. Errors name the address.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(ListenerOptions options);
  /// Closes all connections and joins the thread. Requires: no Reducer and no StateClient is left.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Best first: "unix:/path", "host:port".
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// How many chunks of sums, and answers to learners' fetches, have come from other members. By
  /// any thread.
  uint64_t moved() const;
  /// The event loop of its thread, for what else belongs there. Nothing of others may be left on it
  /// when the listener is destroyed.
  boost::asio::io_context* loop();
  /// Calls `task` soon, on the listener's thread. By any thread.
  void Post(std::function<void()> task);
  /// The same, and waits until it has run. Not by the listener's thread.
  void RunAndWait(std::function<void()> task);

 private:
  friend class Reducer;
  friend class StateClient;
  explicit Listener(std::shared_ptr<internal::ListenerState> state,
                    std::vector<std::string> addresses)
      : state_(std::move(state)), addresses_(std::move(addresses)) {}
  std::shared_ptr<internal::ListenerState> state_;
  std::vector<std::string> addresses_;
};

}  // namespace muster::collectives
