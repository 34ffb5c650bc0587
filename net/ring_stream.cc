#include "net/ring_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "net/spin_budget.h"

namespace muster::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// How many bytes a write puts into the ring before it tells the peer. So the peer reads the first
/// bytes of a long write while they are in the processor's cache.
constexpr size_t kPublishBytes = 256u << 10;

/// A pending read or write: some buffers, and how far it has got in them.
template <typename Buffers>
struct Transfer {
  Buffers buffers;
  ByteStream::Handler done;
  bool some = false;  // one byte is enough
  size_t awaits = 0;  // wait for this many bytes, and leave them in place
  size_t buffer = 0;
  size_t offset = 0;
  size_t moved = 0;

  bool complete() const { return buffer == buffers.size() || (some && moved > 0); }
  /// Moves at most `most` bytes with `move(piece, bytes)`, and returns how many it moved.
  template <typename Move>
  size_t Go(size_t most, Move move) {
    size_t total = 0;
    SkipEmpty();
    while (buffer < buffers.size() && total < most) {
      const size_t bytes = std::min(buffers[buffer].size() - offset, most - total);
      move(buffers[buffer] + offset, bytes, total);
      offset += bytes;
      total += bytes;
      SkipEmpty();
    }
    moved += total;
    return total;
  }
  void SkipEmpty() {
    for (; buffer < buffers.size() && offset == buffers[buffer].size(); offset = 0) ++buffer;
  }
};

using Reading = Transfer<absl::InlinedVector<asio::mutable_buffer, 4>>;
using Writing = Transfer<std::vector<asio::const_buffer>>;

}  // namespace

struct RingStream::State : std::enable_shared_from_this<State> {
  State(Socket given, RingMemory shared, Side side, Spin spin)
      : socket(std::move(given)),
        memory(std::move(shared)),
        writer(side == Side::kMadeIt ? memory.makers() : memory.openers()),
        reader(side == Side::kMadeIt ? memory.openers() : memory.makers()),
        clock(spin.clock),
        spin_budget(spin.max) {
    MUSTER_CHECK(spin.max.count() == 0 || clock != nullptr);
  }

  void Listen();
  void BeginRead(std::span<const asio::mutable_buffer> into, ByteStream::Handler done);
  void GoOnReading();
  void GoOnWriting();
  /// Does one turn. Returns true if nothing more can be done now.
  absl::StatusOr<bool> ReadTurn();
  absl::StatusOr<bool> WriteTurn();
  /// At most `have` bytes can be read. Returns true if the reader has set its sleep flag, or will
  /// check again soon.
  absl::StatusOr<bool> WaitToRead(size_t have);
  void CountWait();
  /// Passes over `bytes` of the bytes that have arrived.
  void Pass(size_t bytes);
  bool Poll();
  void EndPolling();
  /// Publishes `bytes` that were written into the room.
  void Publish(size_t bytes);
  /// Gives the passed bytes back, so that they may be overwritten.
  void GiveBack();
  void Ring();
  void Fail(const error_code& error);
  void Fail(const absl::Status& status);
  template <typename Operation>
  void Complete(std::optional<Operation>* operation, const error_code& error);

  Socket socket;
  RingMemory memory;
  RingWriter writer;
  RingReader reader;
  std::array<std::byte, 64> bells;
  std::optional<Reading> read;
  std::optional<Writing> write;
  std::vector<asio::const_buffer> write_list;  // of the last write
  error_code ended;                            // why no more bytes will come from the peer
  std::string failure;
  uint64_t moved = 0;
  bool borrowed = false;  // read bytes stay in place

  /// The handler of an operation that has ended.
  struct Finished {
    ByteStream::Handler done;
    error_code error;
    size_t moved = 0;
    void operator()() { done(error, moved); }
  };
  bool polled = false;
  std::vector<Finished> to_call;  // the next Poll calls them
  std::vector<Finished> called;   // empty; its memory is reused

  const Clock* const clock;
  SpinBudget spin_budget;
  std::optional<TimePoint> waits_since;  // since when there has been nothing to read
  bool looks_again = false;              // the next check is posted
};

RingStream::RingStream(Socket socket, RingMemory memory, Side side, Spin spin)
    : state_(std::make_shared<State>(std::move(socket), std::move(memory), side, spin)) {
  state_->Listen();
}

RingStream::~RingStream() {
  Close();
}

template <typename Operation>
void RingStream::State::Complete(std::optional<Operation>* operation, const error_code& error) {
  // The handler must be called outside of the call that began the operation, and when a new
  // operation can begin. So it is called later.
  Finished end{std::move((*operation)->done), error, (*operation)->moved};
  if constexpr (std::is_same_v<Operation, Writing>) write_list = std::move((*operation)->buffers);
  operation->reset();
  if (polled) {
    to_call.push_back(std::move(end));
  } else {
    asio::post(socket.get_executor(), std::move(end));
  }
}

void RingStream::State::Listen() {
  socket.async_read_some(asio::buffer(bells),
                         [self = shared_from_this()](const error_code& error, size_t /*bells*/) {
                           if (error) return self->Fail(error);
                           self->GoOnReading();
                           self->GoOnWriting();
                           if (self->socket.is_open()) self->Listen();
                         });
}

void RingStream::State::Ring() {
  // If the socket is full, it already holds a doorbell for the peer. Listen notices a broken
  // socket.
  MUSTER_FAILPOINT("ring.before-bell");
  const char bell = 0;
  static_cast<void>(::send(socket.native_handle(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void RingStream::State::GoOnReading() {
  while (read.has_value()) {
    const absl::StatusOr<bool> waits = ReadTurn();
    if (!waits.ok()) return Fail(waits.status());
    if (*waits) break;
  }
  if (read.has_value() && ended) Complete(&read, ended);
}

absl::StatusOr<bool> RingStream::State::ReadTurn() {
  MUSTER_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, reader.Bytes());
  if (read->awaits > 0) {
    if (bytes.size() < read->awaits) return WaitToRead(bytes.size());
    CountWait();
    Complete(&read, {});
    return true;
  }
  const size_t taken =
      read->Go(bytes.size(), [&](asio::mutable_buffer into, size_t count, size_t from) {
        std::memcpy(into.data(), bytes.data() + from, count);
      });
  if (taken > 0) {
    CountWait();
    Pass(taken);
  }
  if (read->complete()) {
    Complete(&read, {});
    return true;
  }
  return WaitToRead(0);
}

void RingStream::State::CountWait() {
  if (waits_since.has_value()) {
    spin_budget.Waited(clock->Now() - *std::exchange(waits_since, std::nullopt));
  }
}

void RingStream::State::Pass(size_t bytes) {
  reader.Pass(bytes);
  moved += bytes;
  if (!borrowed) GiveBack();
}

void RingStream::State::Publish(size_t bytes) {
  moved += bytes;
  if (bytes == 0) return;
  MUSTER_FAILPOINT("ring.before-publish");
  const bool sleeps = writer.Publish(bytes);
  MUSTER_FAILPOINT("ring.after-publish");
  if (sleeps) Ring();
}

void RingStream::State::GiveBack() {
  MUSTER_FAILPOINT("ring.before-give-back");
  const bool sleeps = reader.GiveBack(reader.passed());
  MUSTER_FAILPOINT("ring.after-give-back");
  if (sleeps) Ring();
}

absl::StatusOr<bool> RingStream::State::WaitToRead(size_t have) {
  if (polled) return true;
  if (clock != nullptr && !ended) {
    const TimePoint now = clock->Now();
    if (!waits_since.has_value()) waits_since = now;
    if (now - *waits_since < spin_budget.budget()) {
      // The next check is posted behind the other work of the loop.
      if (!std::exchange(looks_again, true)) {
        asio::post(socket.get_executor(), [self = shared_from_this()] {
          self->looks_again = false;
          std::this_thread::yield();  // the peer may need this processor
          self->GoOnReading();
        });
      }
      return true;
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const bool sleeps, reader.Sleep(have));
  if (sleeps) MUSTER_FAILPOINT("ring.reader-sleeps");
  return sleeps;
}

bool RingStream::State::Poll() {
  if (!polled) return false;  // closed
  const uint64_t before = moved;
  GoOnReading();
  GoOnWriting();
  std::vector<Finished> ends = std::exchange(to_call, std::exchange(called, {}));
  for (Finished& end : ends) end();
  const bool some = moved != before || !ends.empty();
  ends.clear();
  called = std::move(ends);
  return some;
}

void RingStream::State::EndPolling() {
  polled = false;
  for (Finished& end : std::exchange(to_call, {})) {
    asio::post(socket.get_executor(), std::move(end));
  }
  GoOnReading();
}

void RingStream::State::GoOnWriting() {
  while (write.has_value()) {
    const absl::StatusOr<bool> waits = WriteTurn();
    if (!waits.ok()) return Fail(waits.status());
    if (*waits) break;
  }
  if (write.has_value() && ended) Complete(&write, ended);
}

absl::StatusOr<bool> RingStream::State::WriteTurn() {
  MUSTER_ASSIGN_OR_RETURN(const std::span<std::byte> room, writer.Room());
  const size_t given = write->Go(std::min(room.size(), kPublishBytes),
                                 [&](asio::const_buffer from, size_t count, size_t at) {
                                   std::memcpy(room.data() + at, from.data(), count);
                                 });
  Publish(given);
  if (write->complete()) {
    Complete(&write, {});
    return true;
  }
  MUSTER_ASSIGN_OR_RETURN(const bool sleeps, writer.Sleep());
  if (sleeps) MUSTER_FAILPOINT("ring.writer-sleeps");
  return sleeps;
}

void RingStream::State::Fail(const error_code& error) {
  if (!ended) ended = error;
  // Bytes that the peer wrote before it ended are still read.
  GoOnReading();
  if (write.has_value()) Complete(&write, ended);
}

void RingStream::State::Fail(const absl::Status& status) {
  failure = Message(status);
  error_code ignored;
  socket.close(ignored);
  ended = asio::error::make_error_code(asio::error::connection_aborted);
  if (read.has_value()) Complete(&read, ended);
  if (write.has_value()) Complete(&write, ended);
}

void RingStream::State::BeginRead(std::span<const asio::mutable_buffer> into,
                                  ByteStream::Handler done) {
  MUSTER_CHECK(!read.has_value());
  read.emplace();
  read->buffers.assign(into.begin(), into.end());
  read->done = std::move(done);
  GoOnReading();
}

void RingStream::ReadSome(asio::mutable_buffer into, Handler done) {
  MUSTER_CHECK(!state_->read.has_value() && into.size() > 0);
  state_->read.emplace();
  state_->read->buffers = {into};
  state_->read->done = std::move(done);
  state_->read->some = true;
  state_->GoOnReading();
}

void RingStream::Read(std::vector<asio::mutable_buffer> into, Handler done) {
  state_->BeginRead(into, std::move(done));
}

void RingStream::ReadOne(asio::mutable_buffer into, Handler done) {
  state_->BeginRead({&into, 1}, std::move(done));
}

size_t RingStream::ReadNow(std::span<std::byte> into) {
  MUSTER_CHECK(!state_->read.has_value());
  // The next read reports an impossible count of the peer, because this function cannot.
  const std::span<std::byte> bytes = state_->reader.Bytes().value_or(std::span<std::byte>());
  const size_t taken = std::min(bytes.size(), into.size());
  if (taken == 0) return 0;
  std::memcpy(into.data(), bytes.data(), taken);
  state_->Pass(taken);
  return taken;
}

size_t RingStream::lends() const {
  // The other half is for the bytes before and after it.
  return state_->reader.capacity() / 2;
}

void RingStream::Await(size_t bytes, Handler done) {
  MUSTER_CHECK(!state_->read.has_value() && !state_->borrowed && bytes > 0 && bytes <= lends());
  state_->read.emplace();
  state_->read->awaits = bytes;
  state_->read->done = std::move(done);
  state_->GoOnReading();
}

std::span<std::byte> RingStream::Borrow(size_t bytes) {
  MUSTER_CHECK(!state_->read.has_value() && !state_->borrowed && bytes > 0 && bytes <= lends());
  const std::span<std::byte> come = state_->reader.Bytes().value_or(std::span<std::byte>());
  if (come.size() < bytes) return {};
  state_->borrowed = true;
  state_->Pass(bytes);
  return come.first(bytes);
}

void RingStream::GiveBack() {
  if (!std::exchange(state_->borrowed, false)) return;
  state_->GiveBack();
}

void RingStream::Write(std::vector<asio::const_buffer> from, Handler done) {
  MUSTER_CHECK(!state_->write.has_value());
  state_->write.emplace();
  state_->write->buffers = std::move(from);
  state_->write->done = std::move(done);
  state_->GoOnWriting();
}

std::vector<asio::const_buffer> RingStream::SpareList() {
  std::vector<asio::const_buffer> list = std::exchange(state_->write_list, {});
  list.clear();
  return list;
}

std::span<std::byte> RingStream::Room() {
  if (state_->write.has_value() || state_->ended) return {};
  // The next Write reports an impossible count of the peer, because this function cannot.
  return state_->writer.Room().value_or(std::span<std::byte>());
}

void RingStream::Wrote(size_t bytes) {
  MUSTER_CHECK(!state_->write.has_value());
  state_->Publish(bytes);
}

bool RingStream::BeginPolling() {
  MUSTER_CHECK(!state_->polled);
  state_->polled = true;
  state_->reader.StayAwake();
  return true;
}

bool RingStream::Poll() {
  const std::shared_ptr<State> state = state_;  // handlers may destroy the stream
  return state->Poll();
}

void RingStream::EndPolling() {
  if (state_->polled) state_->EndPolling();
}

void RingStream::ShutdownSend() {
  error_code ignored;
  state_->socket.shutdown(Socket::shutdown_send, ignored);
}

void RingStream::Close() {
  State& state = *state_;
  error_code ignored;
  state.socket.close(ignored);
  if (!state.ended) state.ended = asio::error::operation_aborted;
  if (state.polled) state.EndPolling();  // a closed stream needs no polling
  if (state.read.has_value()) state.Complete(&state.read, state.ended);
  if (state.write.has_value()) state.Complete(&state.write, state.ended);
}

bool RingStream::is_open() const {
  return state_->socket.is_open();
}

std::string_view RingStream::failure() const {
  return state_->failure;
}

uint64_t RingStream::bytes_moved() const {
  return state_->moved;
}

}  // namespace muster::net
