#pragma once

#include <memory>

#include "base/clock.h"
#include "net/byte_stream.h"
#include "net/ring_memory.h"

namespace muster::net {

/// A stream through memory that two processes of one machine share, without a system call for each
/// transfer. The UNIX socket over which the memory was handed over stays open. It wakes a sleeping
/// side, and it proves that the peer lives: when it ends, the stream ends after the bytes that are
/// still in the ring.
///
/// Each side checks what the peer writes into the shared memory; an impossible value ends the
/// stream with an error. Each side keeps its own counts, so a peer that is stopped or killed at any
/// instruction leaves nothing locked.
class RingStream : public ByteStream {
 public:
  enum class Side { kMadeIt, kOpenedIt };
  /// How long a read may poll on the event loop before it sleeps; see SpinBudget.
  struct Spin {
    std::chrono::nanoseconds max{0};
    /// Needed if `max` is not 0. Must outlive the stream.
    const Clock* clock = nullptr;
  };

  /// `socket` is the connected UNIX socket. From now on, it carries nothing but doorbells.
  RingStream(Socket socket, RingMemory memory, Side side, Spin spin);
  ~RingStream() override;

  void ReadSome(boost::asio::mutable_buffer into, Handler done) override;
  void Read(std::vector<boost::asio::mutable_buffer> into, Handler done) override;
  void ReadOne(boost::asio::mutable_buffer into, Handler done) override;
  size_t ReadNow(std::span<std::byte> into) override;
  size_t lends() const override;
  void Await(size_t bytes, Handler done) override;
  std::span<std::byte> Borrow(size_t bytes) override;
  void GiveBack() override;
  void Write(std::vector<boost::asio::const_buffer> from, Handler done) override;
  std::vector<boost::asio::const_buffer> SpareList() override;
  std::span<std::byte> Room() override;
  void Wrote(size_t bytes) override;
  bool BeginPolling() override;
  bool Poll() override;
  void EndPolling() override;
  void ShutdownSend() override;
  void Close() override;
  bool is_open() const override;
  uint64_t bytes_moved() const override;
  bool lossless() const override { return true; }
  std::string_view failure() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::net
