#include "net/tls_stream.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cstring>
#include <utility>

#include "net/tls_engine.h"

namespace muster::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

using Step = TlsEngine::Step;

/// About how many encrypted bytes one system call sends. With more, the first would leave the
/// processor's cache between the encryption and the call.
constexpr size_t kSendBytes = 8 * TlsEngine::kRecordBytesMax;

bool WouldBlock(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

/// A list of buffers, and how far it is done.
template <typename Buffer>
struct Cursor {
  std::vector<Buffer> list;
  size_t index = 0;
  size_t offset = 0;  // in list[index]

  void Start(std::vector<Buffer> given) {
    list = std::move(given);
    index = offset = 0;
  }
  /// The rest of the present buffer; empty at the end.
  Buffer Rest() {
    while (index < list.size() && offset == list[index].size()) {
      ++index;
      offset = 0;
    }
    return index < list.size() ? list[index] + offset : Buffer();
  }
};

}  // namespace

struct TlsStream::State : std::enable_shared_from_this<State> {
  enum class Reading { kNothing, kHandshake, kSome, kAll };
  /// The state of a read or write after some of its work.
  enum class Progress { kFinished, kMustWait, kMore };

  State(Socket given, ssl_ctx_st* context, Side side, size_t step,
        const TlsEngine::Options& options)
      : socket(std::move(given)), engine(context, side, options), step_bytes(step) {
    error_code ignored;
    socket.non_blocking(true, ignored);
  }

  void BeginRead(Reading kind, Handler done);
  /// Works on the pending read. kFinished: read_error has the result. kMustWait: bytes from the
  /// peer are missing.
  Progress WorkOnRead();
  /// Reads from the socket without waiting. If it returns false, read_error says why nothing more
  /// comes.
  bool Receive(bool* waits);
  void AwaitBytes();
  void ContinueRead();
  void EndRead();

  void BeginWrite(Handler done);
  Progress WorkOnWrite();
  /// Encrypts the next part of the list.
  void Encrypt();
  /// Sends the output without waiting. If it returns false, a part is left: `write_error` is set,
  /// or the socket has no room.
  bool Flush();
  void AwaitRoom();
  void ContinueWrite();
  void EndWrite();
  /// Sends what a read has produced: parts of the handshake, and answers to messages of the
  /// protocol.
  void FlushAside();
  /// Reads after a failed send, because the peer may have said why.
  void ReadItsReason();
  void Close();
  template <void (State::*then)()>
  void Post() {
    asio::post(socket.get_executor(), [self = shared_from_this()] { (self.get()->*then)(); });
  }

  Socket socket;
  TlsEngine engine;
  const size_t step_bytes;
  uint64_t moved = 0;

  Reading reading = Reading::kNothing;
  Handler read_done;
  Cursor<asio::mutable_buffer> into;
  size_t read_bytes = 0;
  error_code read_error;

  Handler write_done;  // null: no write is pending
  Cursor<asio::const_buffer> from;
  size_t write_bytes = 0;
  error_code write_error;
  bool awaits_room = false;
  bool ends = false;  // ends this direction after the output
  std::array<std::byte, TlsEngine::kRecordBytesMax> gathered;
};

void TlsStream::State::BeginRead(Reading kind, Handler done) {
  MUSTER_CHECK(reading == Reading::kNothing);
  reading = kind;
  read_done = std::move(done);
  read_bytes = 0;
  read_error = {};
  switch (WorkOnRead()) {
    case Progress::kFinished:
      return Post<&State::EndRead>();
    case Progress::kMustWait:
      return AwaitBytes();
    case Progress::kMore:
      return Post<&State::ContinueRead>();
  }
}

TlsStream::State::Progress TlsStream::State::WorkOnRead() {
  if (!socket.is_open()) {
    read_error = asio::error::operation_aborted;
    return Progress::kFinished;
  }
  size_t worked = 0;
  while (worked < step_bytes) {
    const asio::mutable_buffer rest = into.Rest();
    size_t bytes = 0;
    if (reading != Reading::kHandshake && rest.size() == 0) return Progress::kFinished;
    const Step step =
        reading == Reading::kHandshake
            ? engine.Handshake()
            : engine.Read({static_cast<std::byte*>(rest.data()), rest.size()}, &bytes);
    into.offset += bytes;
    read_bytes += bytes;
    moved += bytes;
    worked += bytes;
    FlushAside();
    switch (step) {
      case Step::kDone:
        if (reading != Reading::kAll) return Progress::kFinished;
        break;
      case Step::kNeedsBytes:
        return Progress::kMustWait;
      case Step::kEnded:
        read_error = asio::error::eof;
        return Progress::kFinished;
      case Step::kTruncated:
        read_error = asio::ssl::error::stream_truncated;
        return Progress::kFinished;
      case Step::kFailed:
        read_error = asio::error::connection_aborted;
        return Progress::kFinished;
    }
  }
  return Progress::kMore;
}

void TlsStream::State::AwaitBytes() {
  const std::span<std::byte> room = engine.Room();
  socket.async_read_some(asio::buffer(room.data(), room.size()),
                         [self = shared_from_this()](const error_code& error, size_t bytes) {
                           if (error == asio::error::eof) {
                             self->engine.ReceivedEnd();
                           } else if (error) {
                             self->read_error = error;
                             return self->EndRead();
                           }
                           self->engine.Received(bytes);
                           self->ContinueRead();
                         });
}

void TlsStream::State::ContinueRead() {
  switch (WorkOnRead()) {
    case Progress::kFinished:
      return EndRead();
    case Progress::kMustWait:
      return AwaitBytes();
    case Progress::kMore:
      return Post<&State::ContinueRead>();
  }
}

void TlsStream::State::EndRead() {
  reading = Reading::kNothing;
  std::exchange(read_done, nullptr)(read_error, read_bytes);
}

void TlsStream::State::BeginWrite(Handler done) {
  MUSTER_CHECK(!write_done);
  write_done = std::move(done);
  write_bytes = 0;
  if (awaits_room) return;
  switch (WorkOnWrite()) {
    case Progress::kFinished:
      return Post<&State::EndWrite>();
    case Progress::kMustWait:
      return AwaitRoom();
    case Progress::kMore:
      return Post<&State::ContinueWrite>();
  }
}

TlsStream::State::Progress TlsStream::State::WorkOnWrite() {
  if (!socket.is_open() && !write_error) write_error = asio::error::operation_aborted;
  const size_t began = write_bytes;
  while (!write_error) {
    if (!Flush()) break;
    if (!write_done || from.Rest().size() == 0) return Progress::kFinished;
    if (write_bytes - began >= step_bytes) return Progress::kMore;
    Encrypt();
  }
  return write_error ? Progress::kFinished : Progress::kMustWait;
}

void TlsStream::State::Encrypt() {
  while (engine.output().size() < kSendBytes) {
    const asio::const_buffer rest = from.Rest();
    const auto* data = static_cast<const std::byte*>(rest.data());
    std::span<const std::byte> record(data, std::min(rest.size(), gathered.size()));
    if (record.empty()) return;
    if (record.size() == gathered.size()) {
      from.offset += record.size();
    } else {
      // Small buffers are put into one record.
      size_t size = 0;
      for (asio::const_buffer next = rest; next.size() > 0 && size < gathered.size();
           next = from.Rest()) {
        const size_t bytes = std::min(next.size(), gathered.size() - size);
        std::memcpy(gathered.data() + size, next.data(), bytes);
        size += bytes;
        from.offset += bytes;
      }
      record = std::span(gathered).first(size);
    }
    if (!engine.Write(record)) {
      write_error = asio::error::connection_aborted;
      return;
    }
    write_bytes += record.size();
    moved += record.size();
  }
}

bool TlsStream::State::Flush() {
  while (!engine.output().empty()) {
    const std::span<const std::byte> output = engine.output();
    error_code error;
    const size_t sent = socket.write_some(asio::buffer(output.data(), output.size()), error);
    engine.Sent(sent);
    if (!error) continue;
    if (WouldBlock(error)) return false;
    write_error = error;
    ReadItsReason();
    return false;
  }
  if (ends) {
    error_code ignored;
    socket.shutdown(Socket::shutdown_send, ignored);
  }
  return true;
}

void TlsStream::State::ReadItsReason() {
  if (reading != Reading::kNothing || !engine.handshake_done()) return;
  const std::span<std::byte> room = engine.Room();
  if (room.empty()) return;
  error_code error;
  engine.Received(socket.read_some(asio::buffer(room.data(), room.size()), error));
  std::array<std::byte, 1> byte;
  size_t bytes = 0;
  engine.Read(byte, &bytes);  // the stream is useless now, so the byte does not matter
}

void TlsStream::State::AwaitRoom() {
  if (std::exchange(awaits_room, true)) return;
  socket.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
    self->awaits_room = false;
    if (error) self->write_error = error;
    self->ContinueWrite();
  });
}

void TlsStream::State::ContinueWrite() {
  switch (WorkOnWrite()) {
    case Progress::kFinished:
      return EndWrite();
    case Progress::kMustWait:
      return AwaitRoom();
    case Progress::kMore:
      return Post<&State::ContinueWrite>();
  }
}

void TlsStream::State::EndWrite() {
  Handler done = std::exchange(write_done, nullptr);
  FlushAside();  // a read may have produced output since the write's last step
  if (done) done(write_error, write_bytes);
}

void TlsStream::State::FlushAside() {
  // If a write is pending, it sends this output, too.
  if (write_done || awaits_room || write_error || engine.output().empty()) return;
  if (!Flush() && !write_error) AwaitRoom();
}

void TlsStream::State::Close() {
  if (!socket.is_open()) return;
  error_code ignored;
  if (!write_done && !write_error) {
    engine.End();
    Flush();
  }
  socket.close(ignored);
}

TlsStream::TlsStream(Socket socket, ssl_ctx_st* context, Side side, size_t step_bytes,
                     const TlsEngine::Options& options)
    : state_(std::make_shared<State>(std::move(socket), context, side, step_bytes, options)) {}

TlsStream::~TlsStream() {
  state_->Close();
}

void TlsStream::Handshake(Handler done) {
  state_->into.Start({});
  state_->BeginRead(State::Reading::kHandshake, std::move(done));
}

bool TlsStream::handshake_done() const {
  return state_->engine.handshake_done();
}

ssl_st* TlsStream::native() const {
  return state_->engine.native();
}

void TlsStream::ReadSome(asio::mutable_buffer into, Handler done) {
  state_->into.Start({into});
  state_->BeginRead(State::Reading::kSome, std::move(done));
}

void TlsStream::Read(std::vector<asio::mutable_buffer> into, Handler done) {
  state_->into.Start(std::move(into));
  state_->BeginRead(State::Reading::kAll, std::move(done));
}

void TlsStream::ReadOne(asio::mutable_buffer into, Handler done) {
  // Reuses the memory of the list.
  state_->into.list.assign(1, into);
  state_->into.index = state_->into.offset = 0;
  state_->BeginRead(State::Reading::kAll, std::move(done));
}

size_t TlsStream::ReadNow(std::span<std::byte> into) {
  MUSTER_CHECK(state_->reading == State::Reading::kNothing);
  size_t total = 0;
  while (total < into.size()) {
    size_t bytes = 0;
    // The next read finds the same error.
    if (state_->engine.Read(into.subspan(total), &bytes) != Step::kDone) break;
    total += bytes;
  }
  state_->moved += total;
  return total;
}

void TlsStream::Write(std::vector<asio::const_buffer> from, Handler done) {
  state_->from.Start(std::move(from));
  state_->BeginWrite(std::move(done));
}

std::vector<asio::const_buffer> TlsStream::SpareList() {
  MUSTER_CHECK(!state_->write_done);
  std::vector<asio::const_buffer> list = std::move(state_->from.list);
  list.clear();
  return list;
}

void TlsStream::ShutdownSend() {
  MUSTER_CHECK(!state_->write_done);
  state_->engine.End();
  state_->ends = true;
  if (!state_->awaits_room && !state_->Flush() && !state_->write_error) state_->AwaitRoom();
}

void TlsStream::Close() {
  state_->Close();
}

bool TlsStream::is_open() const {
  return state_->socket.is_open();
}

uint64_t TlsStream::bytes_moved() const {
  return state_->moved;
}

std::string_view TlsStream::failure() const {
  return state_->engine.failure();
}

}  // namespace muster::net
