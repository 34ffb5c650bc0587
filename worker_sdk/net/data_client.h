#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "net/tls_engine.h"
#include "proto/messages/job_identity.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {

/// The worker's side of the data plane: it carries SendRequests to the lanes of servers, and brings
/// their answers back. There is one connection per (server incarnation, lane). It is made when
/// first needed, over the UNIX socket if its path exists, otherwise over TCP. Requests are
/// pipelined. One I/O thread serves the connections. A caller's thread does the same work while it
/// sends something small or waits in Spin, so that it need not be woken.
///
/// It never sends anything twice, and has no back-off. If a connection cannot be made, breaks, or
/// is silent for too long, all its outstanding requests are reported as unanswered, and PartSender
/// decides what follows.
///
/// Thread-safety: any thread may call Send, SetServers, SetTimer and Spin. Start, Stop and the
/// destructor belong to the owner.
class DataClient {
 public:
  /// Called on the I/O thread or within a call of the client, one call at a time, and without any
  /// lock of the client. Must neither block nor throw.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// `parts` has one entry per item of the request, and `rows` are those of a pull. They are
    /// valid until this returns, because the server may then overwrite their memory. Return false
    /// if `rows.check` found damage: the answer then does not count, and OnUnanswered follows.
    virtual bool OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
                         const ReceivedRows& rows, std::string_view text) = 0;
    /// `why` names the server and what went wrong.
    virtual void OnUnanswered(RequestId id, std::string_view why) = 0;
    /// The request is also unanswered, but because the server calls its frame malformed. `text` is
    /// the server's message.
    virtual void OnRefused(const SendRequest& request, std::string_view text) = 0;
    virtual void OnTimer() = 0;
    /// A new connection is ready: the server has answered the greeting.
    virtual void OnConnected(const LaneAddress& /*lane*/) {}
    /// A connection could not be made. `why` has the address.
    virtual void OnCannotConnect(const LaneAddress& /*lane*/, std::string_view /*why*/) {}
  };
  struct Options {
    JobIdentity job;
    std::string worker;
    uint32_t partition_count = 0;
    wire::Encoding encoding = wire::Encoding::kFloat32;
    /// How many bytes of memory are shared with a lane on this machine, for each direction; 0:
    /// none.
    uint32_t ring_bytes_max = 4u << 20;
    /// Called for each connection over TCP. If empty, they are plain text.
    net::TlsContextSource tls;
    /// The requested size of a UNIX socket's send buffer. A TCP socket finds its own size.
    int unix_buffer_bytes = 4 << 20;
    /// A connection with outstanding requests is given up if no byte moves for this long.
    std::chrono::milliseconds silence_max{20'000};
    /// The time limit for connecting and for the greeting.
    std::chrono::milliseconds connect_timeout{5'000};
  };

  /// `listener` must outlive the client.
  DataClient(Options options, Listener* listener);
  /// Stops.
  ~DataClient();
  DataClient(const DataClient&) = delete;
  DataClient& operator=(const DataClient&) = delete;

  void Start();
  /// Joins the I/O thread. After that, nothing is reported. Idempotent.
  void Stop();

  /// Says where lanes are. Connections to incarnations that are not in the list are closed.
  void SetServers(std::vector<ServerEndpoint> servers);
  /// Sends requests in the given order.
  void Send(SendRequests requests);
  /// For a thread that waits for answers. It polls the servers with which the process shares
  /// memory, until `done()` is true or nothing has arrived for `budget`, but at most for ten times
  /// `budget`. Only one thread polls at a time. For other threads, or without such servers, it
  /// returns at once. `done` must not call the client.
  void Spin(absl::FunctionRef<bool()> done, std::chrono::nanoseconds budget);
  /// Has OnTimer called once: at `when`, or at an earlier time that was set and has not come yet.
  /// If `when` has passed, it is called at once.
  void SetTimer(TimePoint when);

 private:
  struct State;
  struct PostedSend;
  std::unique_ptr<State> state_;
};

}  // namespace muster::sdk
