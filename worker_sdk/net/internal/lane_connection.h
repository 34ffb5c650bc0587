#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "net/socket_stream.h"
#include "proto/wire/checksum_stream.h"
#include "worker_sdk/core/pooled.h"
#include "worker_sdk/core/row_check.h"
#include "worker_sdk/net/data_client.h"
#include "worker_sdk/net/internal/request_frame.h"

namespace muster::sdk::net_internal {

/// One connection to one lane, from its creation to its end; it is not reused. Handlers keep it
/// alive. Not thread-safe: its executor runs handlers one at a time, and calls must come between
/// them.
class LaneConnection : public std::enable_shared_from_this<LaneConnection> {
 public:
  using Stream = boost::asio::generic::stream_protocol;

  struct Target {
    LaneAddress lane;
    std::string name;                    // "ps-0.1", for messages
    std::vector<std::string> addresses;  // best first
  };

  /// True if memory may be shared with servers of this machine. If it could not be used once, it is
  /// not requested again.
  struct Sharing {
    bool wanted = true;
    /// Lanes whose UNIX socket is another server's here.
    std::set<LaneAddress> tcp_only;
  };

  /// `closed` is called once, when the connection has ended; what was outstanding has been reported
  /// by then. `options`, `listener`, `sharing` and `clock` must outlive the connection.
  LaneConnection(boost::asio::any_io_executor executor, Target target,
                 const DataClient::Options* options, DataClient::Listener* listener,
                 Sharing* sharing, const Clock* clock, std::function<void(LaneConnection*)> closed);

  /// Starts to connect. Call once.
  void Start();
  /// Queues a request; it is sent after the server's greeting.
  void Send(SendRequest request);
  /// As in net::ByteStream: the caller polls for answers. False: not possible now.
  bool BeginPolling();
  bool Poll();
  void EndPolling();
  /// Ends the connection and reports everything outstanding; `refused`: the request that the server
  /// calls malformed.
  void Close(std::string_view why, std::optional<RequestId> refused = {});
  /// Gives the connection up if the server owes an answer and no byte has moved for too long.
  void CheckSilence();

 private:
  void TryAddress(size_t index);
  /// After `error` with the address in use.
  void NextAddress(const boost::system::error_code& error);
  /// Connects to the first that answers, from `next` on.
  void TryEndpoints(std::vector<Stream::endpoint> endpoints, size_t next);
  void OnConnected();
  /// The peer is the server that it claims to be.
  void SendHello();
  void WriteQueued();
  /// Builds the frame of the oldest queued request, which is outstanding from then on.
  std::unique_ptr<RequestFrame> BuildNext();
  void KeepFrame(std::unique_ptr<RequestFrame> frame);
  /// Builds the frame where the server reads it, if there is room.
  bool WriteInPlace(const RequestFrame& frame);
  void ReadHeader();
  void OnHeader();
  void OnDirectory();
  absl::Status OnHelloReply();
  /// Waits for the memory that the server shares, and continues in it.
  void AwaitRings();
  absl::Status EnterRings();
  void Greeted();
  absl::Status OnReplyDirectory();
  /// Of the frame being read: whether there is a checksum to be checked, or an error where one is
  /// missing.
  absl::StatusOr<bool> HasChecksum() const;
  /// Of the frame being read, whose `values` are as they came. One at a time.
  RowCheck CheckOf(std::span<const std::byte> values);
  absl::Status CheckChecksum(std::span<const std::byte> values);
  void ReadValues(uint64_t floats);
  void OnValues();
  /// True if the rows are read directly from the stream's own memory.
  bool BorrowsValues() const;
  void OnBorrowed();
  void Deliver(ReceivedRows rows);
  void WatchSilence();
  void Read(boost::asio::mutable_buffer into, void (LaneConnection::*then)());
  void OnWritten();
  template <typename Handler>
  struct Guard;
  template <typename Handler>
  Guard<Handler> Guarded(Handler handler);

  Target target_;
  const DataClient::Options* options_;
  DataClient::Listener* listener_;
  Sharing* sharing_;
  const Clock* clock_;
  std::function<void(LaneConnection*)> closed_handler_;
  size_t address_ = 0;     // of target_.addresses: the one in use
  Stream::socket socket_;  // until it is connected
  boost::asio::ip::tcp::resolver resolver_;
  std::unique_ptr<net::ByteStream> stream_;  // from then on
  net::SocketStream* plain_ = nullptr;       // stream_, as long as it is a UNIX socket
  size_t ring_bytes_ = 0;                    // of the memory that the server shares
  boost::asio::steady_timer timer_;
  std::string last_error_;

  bool closed_ = false;
  bool greeted_ = false;
  bool writing_ = false;
  TimePoint last_progress_{};  // when bytes moved, or when an idle connection got a request
  uint64_t bytes_moved_ = 0;   // by then
  std::deque<SendRequest, PoolAllocator<SendRequest>> queue_;  // not yet written
  using Outstanding = std::map<RequestId, SendRequest, std::less<>,
                               PoolAllocator<std::pair<const RequestId, SendRequest>>>;
  Outstanding outstanding_;
  using Frames = std::vector<std::unique_ptr<RequestFrame>>;
  Frames frames_;        // being written
  Frames spare_frames_;  // for the next ones

  // The frame being read, and the next step when its next piece has arrived.
  void (LaneConnection::*then_)() = nullptr;
  std::array<std::byte, wire::kHeaderBytes> header_bytes_;
  wire::Header header_;
  std::string directory_;
  wire::Reply reply_;
  std::shared_ptr<float[]> rows_;
  std::vector<std::byte> encoded_;
  uint64_t floats_ = 0;
  wire::ChecksumStream sum_;
};

}  // namespace muster::sdk::net_internal
