#pragma once

#include <boost/asio/any_io_executor.hpp>
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
#include "net/connector.h"
#include "proto/wire/checksum_stream.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/row_check.h"
#include "worker_sdk/net/data_client.h"
#include "worker_sdk/net/internal/request_frame.h"

namespace muster::sdk::net_internal {

/// One connection to one lane, from its creation to its end; it is not reused. Handlers keep it
/// alive. Not thread-safe: its executor runs handlers one at a time, and calls must come between
/// them.
class LaneConnection : public std::enable_shared_from_this<LaneConnection>,
                       private net::Connector::Greeting {
 public:
  struct Target {
    LaneAddress lane;
    std::string name;                    // "ps-0.1", for messages
    std::vector<std::string> addresses;  // best first
  };

  /// True if memory may be shared with servers of this machine. If sharing failed once, it is not
  /// requested again.
  struct Sharing {
    bool wanted = true;
    /// Lanes whose UNIX socket belongs to another server on this machine.
    std::set<LaneAddress> tcp_only;
  };

  /// `closed` is called once, when the connection has ended. By then, all outstanding requests have
  /// been reported. `options`, `listener`, `sharing` and `clock` must outlive the connection.
  LaneConnection(boost::asio::any_io_executor executor, Target target,
                 const DataClient::Options* options, DataClient::Listener* listener,
                 Sharing* sharing, const Clock* clock, std::function<void(LaneConnection*)> closed);

  /// Starts to connect. Call it once.
  void Start();
  /// Queues a request. It is sent after the server's greeting.
  void Send(SendRequest request);
  /// The same as in net::ByteStream: the caller polls for answers. Returns false if that is not
  /// possible now.
  bool BeginPolling();
  bool Poll();
  void EndPolling();
  /// Ends the connection, and reports all outstanding requests. `refused` is the request that the
  /// server calls malformed.
  void Close(std::string_view why, std::optional<RequestId> refused = {});
  /// Ends the connection if the server owes an answer and no byte has moved for too long.
  void CheckSilence();

 private:
  std::string Hello(bool same_machine, uint32_t ring_bytes) override;
  absl::StatusOr<size_t> OnHeader(std::span<const std::byte, wire::kHeaderBytes> header) override;
  absl::StatusOr<uint32_t> OnAnswer(std::string_view directory) override;
  void OnUselessRings() override { sharing_->wanted = false; }
  /// Reads the server's greeting in `directory_`. OnAnswer takes the size of the rings from it.
  absl::StatusOr<uint32_t> OnHelloReply();
  void OnMade(absl::StatusOr<net::Connector::Made> made);
  void WriteQueued();
  /// Builds the frame of the oldest queued request. From then on, the request is outstanding.
  std::unique_ptr<RequestFrame> BuildNext();
  void KeepFrame(std::unique_ptr<RequestFrame> frame);
  /// If there is room, writes the frame directly where the server reads it.
  bool WriteInPlace(const RequestFrame& frame);
  void ReadHeader();
  absl::Status TakeHeader(std::span<const std::byte, wire::kHeaderBytes> bytes);
  void OnFrame();
  void OnDirectory();
  absl::Status OnReplyDirectory();
  /// Whether the frame that is being read has a checksum to check. An error if it needs one and has
  /// none.
  absl::StatusOr<bool> HasChecksum() const;
  /// The check of the frame that is being read. `values` are its values as they arrived. Only one
  /// at a time.
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
  std::shared_ptr<net::Connector> connector_;  // until the server has answered the greeting
  std::unique_ptr<net::ByteStream> stream_;    // from then on
  bool same_machine_ = false;
  boost::asio::steady_timer timer_;

  bool closed_ = false;
  bool writing_ = false;
  TimePoint last_progress_{};  // when bytes last moved, or when an idle connection got a request
  uint64_t bytes_moved_ = 0;   // bytes that had moved by then
  std::deque<SendRequest, PoolAllocator<SendRequest>> queue_;  // not yet written
  using Outstanding = std::map<RequestId, SendRequest, std::less<>,
                               PoolAllocator<std::pair<const RequestId, SendRequest>>>;
  Outstanding outstanding_;
  using Frames = std::vector<std::unique_ptr<RequestFrame>>;
  Frames frames_;        // those that are being written
  Frames spare_frames_;  // their memory is used for the next ones

  // The frame that is being read, and the function to call when its next piece has arrived.
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
