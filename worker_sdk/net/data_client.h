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

/// The data plane as a worker speaks it: carries SendRequests to the lanes of servers and brings
/// their answers back. One connection per (server incarnation, lane), made when first needed, over
/// the UNIX socket where its path exists, else over TCP. Requests are pipelined. One I/O thread
/// serves the connections. A caller's thread does the same while it sends something small, or waits
/// in Spin, so it need not be woken.
///
/// It never sends anything twice and knows no back-off: when a connection cannot be made, breaks,
/// or stays silent too long, everything outstanding on it is reported as unanswered, and PartSender
/// decides.
///
/// Thread-safety: Send, SetServers, SetTimer and Spin may be called by any thread; Start, Stop and
/// the destructor by the owner.
class DataClient {
 public:
  /// Called on the I/O thread or within a call of the client, one call at a time, without any lock
  /// of the client; must neither block nor throw.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// `parts`: one per item of the request; `rows`: of a pull. They are valid until this returns,
    /// because the server may overwrite their memory. False: `rows.check` found damage, so the
    /// answer does not count, and OnUnanswered follows.
    virtual bool OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
                         const ReceivedRows& rows, std::string_view text) = 0;
    /// `why` names the server and what went wrong.
    virtual void OnUnanswered(RequestId id, std::string_view why) = 0;
    /// Also unanswered, but the server calls the request's frame malformed; `text` is its message.
    virtual void OnRefused(const SendRequest& request, std::string_view text) = 0;
    virtual void OnTimer() = 0;
    /// A new connection was greeted.
    virtual void OnConnected(const LaneAddress& /*lane*/) {}
    /// A connection could not be made. `why` has the address.
    virtual void OnCannotConnect(const LaneAddress& /*lane*/, std::string_view /*why*/) {}
  };
  struct Options {
    JobIdentity job;
    std::string worker;
    uint32_t partition_count = 0;
    wire::Encoding encoding = wire::Encoding::kFloat32;
    /// Bytes of memory that is shared with a lane on this machine, for each direction; 0: none.
    uint32_t ring_bytes_max = 4u << 20;
    /// Of connections over TCP, each of which asks for it. Empty: they are plain text.
    net::TlsContextSource tls;
    /// The requested size of a UNIX socket's send buffer. A TCP socket finds its own size.
    int unix_buffer_bytes = 4 << 20;
    /// A connection with outstanding requests is given up if no byte moves for this long.
    std::chrono::milliseconds silence_max{20'000};
    /// The time limit to connect and to get the greeting.
    std::chrono::milliseconds connect_timeout{5'000};
  };

  /// `listener` must outlive the client.
  DataClient(Options options, Listener* listener);
  /// Stops.
  ~DataClient();
  DataClient(const DataClient&) = delete;
  DataClient& operator=(const DataClient&) = delete;

  void Start();
  /// Joins the I/O thread; nothing is reported from then on. Idempotent.
  void Stop();

  /// Where lanes are. Connections to incarnations that are not in the list are closed.
  void SetServers(std::vector<ServerEndpoint> servers);
  /// Requests leave in the order in which they are given.
  void Send(SendRequests requests);
  /// For a thread that waits for answers: polls the servers with which the process shares memory,
  /// until `done()` or until nothing has arrived for `budget`, at most ten times `budget`. Only one
  /// thread at a time polls; for others, and without such servers, it returns at once. `done` must
  /// not call the client.
  void Spin(absl::FunctionRef<bool()> done, std::chrono::nanoseconds budget);
  /// OnTimer is called once, at `when` or at an earlier time that was set and has not come yet; at
  /// once if that has passed.
  void SetTimer(TimePoint when);

 private:
  struct State;
  struct PostedSend;
  std::unique_ptr<State> state_;
};

}  // namespace muster::sdk
