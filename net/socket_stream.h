#pragma once

#include <memory>

#include "net/byte_stream.h"

namespace muster::net {

/// Bytes over a connected socket, TCP or UNIX.
class SocketStream : public ByteStream {
 public:
  /// `step_bytes` is the most that one system call moves.
  SocketStream(Socket socket, size_t step_bytes);

  void ReadSome(boost::asio::mutable_buffer into, Handler done) override;
  void Read(std::vector<boost::asio::mutable_buffer> into, Handler done) override;
  void ReadOne(boost::asio::mutable_buffer into, Handler done) override;
  void Write(std::vector<boost::asio::const_buffer> from, Handler done) override;
  std::vector<boost::asio::const_buffer> SpareList() override;
  void ShutdownSend() override;
  void Close() override;
  bool is_open() const override { return socket_.is_open(); }
  uint64_t bytes_moved() const override { return progress_->moved; }

  Socket& socket() { return socket_; }

 private:
  /// The progress of a read or write that continues until all bytes are moved.
  struct Progress {
    uint64_t moved = 0;  // in both directions
    size_t reading = 0;  // bytes of the pending read that are counted
    size_t writing = 0;  // bytes of the pending write that are counted
    std::vector<boost::asio::const_buffer> write_list;
    void Count(size_t bytes, size_t* counted) {
      moved += bytes - *counted;
      *counted = bytes;
    }
  };
  /// The completion condition of Read and Write: everything in one step if possible. (With Asio's
  /// own steps of 64 KiB, a large frame costs dozens of system calls.) `counted` is a member of
  /// Progress.
  auto AllOfIt(size_t Progress::* counted) const;
  /// The handler of Read and Write.
  auto AtTheEnd(size_t Progress::* counted, Handler done) const;

  Socket socket_;
  size_t step_bytes_;
  // Handlers may outlive the stream.
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

}  // namespace muster::net
