#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "net/endpoints.h"
#include "net/ring_stream.h"
#include "ps/net/internal/peer_connection.h"

namespace muster::ps {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Four texts with their lengths, and a size. A stranger cannot make the server store more than
/// this.
constexpr size_t kHelloBytesMax = 4 * (sizeof(uint32_t) + wire::kTextBytesMax) + sizeof(uint32_t);
/// The cost of a frame besides its parts, in bytes that could be moved in the same time.
constexpr uint64_t kFrameWork = 4096;
/// How much longer it takes to encrypt bytes than to move them.
constexpr uint64_t kTlsWork = 2;
/// Most bytes of a hello's name that messages repeat.
constexpr size_t kPeerBytesMax = 80;

absl::Status NoMemoryFor(size_t block_bytes) {
  return absl::ResourceExhaustedError(
      fmt::format("no memory for a frame with a block of {} bytes", block_bytes));
}

std::string_view Chars(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

}  // namespace

PeerConnection::PeerConnection(net::Socket socket, std::string origin,
                               std::shared_ptr<ssl_ctx_st> tls, const ConnectionContext* context,
                               std::function<void(PeerConnection*)> on_closed)
    : executor_(socket.get_executor()),
      rings_(context->rings),
      origin_(std::move(origin)),
      context_(context),
      on_closed_(std::move(on_closed)),
      request_(context->handler, &in_) {
  // A step takes no longer than a slice.
  const uint64_t step = context->limits->slice_bytes;
  if (tls != nullptr) {
    tls_ = new net::TlsStream(std::move(socket), tls.get(), net::TlsStream::Side::kServer,
                              step / kTlsWork);
    stream_.reset(tls_);
    phase_ = Phase::kHandshake;
  } else {
    socket_ = new net::SocketStream(std::move(socket), step);
    stream_.reset(socket_);
  }
}

PeerConnection::~PeerConnection() {
  for (AlignedBuffer* buffer : {&in_.directory, &in_.keys, &in_.values, request_.widened()}) {
    Trim(buffer);
  }
  for (Outgoing& frame : out_) Trim(&frame.values);
}

void PeerConnection::Start() {
  deadline_ = context_->clock->Now() + context_->limits->hello_timeout;
  return phase_ == Phase::kHandshake ? ShakeHands() : ReadStage();
}

void PeerConnection::ShakeHands() {
  tls_->Handshake([self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
    if (error) return self->OnStreamError();
    self->phase_ = Phase::kHello;
    self->ReadStage();
  });
}

void PeerConnection::GiveUpHandshake(std::string reason) {
  context_->handler->OnRefused(
      {.peer = PeerName(), .reason = std::move(reason), .greeted = false, .closed = true});
  Close();
}

void PeerConnection::Close() {
  stream_->Close();
  if (auto on_closed = std::exchange(on_closed_, nullptr)) on_closed(this);
}

void PeerConnection::OnStreamError() {
  if (const std::string_view failure = stream_->failure(); !failure.empty()) {
    context_->handler->OnRefused({.peer = PeerName(),
                                  .reason = std::string(failure),
                                  .greeted = phase_ == Phase::kServing,
                                  .closed = true});
  }
  Close();
}

void PeerConnection::EndIfOverdue(TimePoint now) {
  if (!deadline_.has_value() || now < *deadline_) return;
  if (phase_ == Phase::kClosing) return Close();
  if (phase_ == Phase::kHandshake) {
    return GiveUpHandshake(fmt::format("it did not finish its TLS handshake within {} ms",
                                       context_->limits->hello_timeout.count()));
  }
  SendError(absl::DeadlineExceededError(
      fmt::format("no hello arrived within {} ms", context_->limits->hello_timeout.count())));
}

std::string PeerConnection::PeerName() const {
  return peer_.empty() ? origin_ : fmt::format("{} ({})", peer_, origin_);
}

void PeerConnection::CompactStage() {
  if (begin_ == 0) return;
  std::memmove(stage_.data(), stage_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

bool PeerConnection::HasHeader() {
  if (end_ - begin_ >= wire::kHeaderBytes) return true;
  if (stream_->lends() == 0) return false;
  CompactStage();
  end_ += stream_->ReadNow(std::span(stage_).first(wire::kHeaderBytes).subspan(end_));
  return end_ == wire::kHeaderBytes;
}

void PeerConnection::ReadStage() {
  CompactStage();
  // If the stream lends memory, only the needed bytes are read. Later bytes may stay in place.
  const size_t until = stream_->lends() > 0 ? wire::kHeaderBytes : stage_.size();
  stream_->ReadSome(asio::buffer(stage_.data() + end_, until - end_),
                    [self = shared_from_this()](const error_code& error, size_t bytes) {
                      if (error) return self->OnStreamError();
                      if (self->phase_ == Phase::kClosing) return;
                      self->end_ += bytes;
                      self->Parse();
                    });
}

void PeerConnection::PostSlice() {
  asio::post(executor_, [self = shared_from_this()] { self->Parse(); });
}

void PeerConnection::Parse() {
  WorkLimit work(context_->limits->slice_bytes);
  while (phase_ != Phase::kClosing) {
    if (request_.under_work()) {
      const absl::StatusOr<Progress> progress = ServeRequest(&work);
      if (!progress.ok()) return SendError(progress.status());
      if (*progress == Progress::kMore) return PostSlice();
    }
    if (!stream_->is_open() || rings_.waiting()) return;
    if (!in_body_) {
      if (MustWait()) {
        waiting_ = true;
        return;
      }
      if (!HasHeader()) return ReadStage();
      if (work.spent()) return PostSlice();
      if (absl::Status status = TakeHeader(); !status.ok()) return SendError(status);
      work.Spend(kFrameWork);
    }
    const absl::StatusOr<bool> whole = HasBody(&work);
    if (!whole.ok()) return SendError(whole.status());
    if (!*whole) return ReadBody();
    in_body_ = false;
    if (absl::Status status = Serve(); !status.ok()) return SendError(status);
  }
}

absl::Status PeerConnection::TakeHeader() {
  auto header = wire::DecodeHeader(
      std::span<const std::byte, wire::kHeaderBytes>(stage_.data() + begin_, wire::kHeaderBytes));
  if (!header.ok()) {
    header_.request = 0;  // the error belongs to no known request
    return header.status();
  }
  begin_ += wire::kHeaderBytes;
  header_ = *header;
  return BeginBody();
}

absl::Status PeerConnection::BeginBody() {
  if (phase_ == Phase::kHello && header_.kind != wire::Kind::kHello) {
    return absl::FailedPreconditionError(
        fmt::format("the first frame of a connection must be a hello, but this one has kind {}",
                    static_cast<int>(header_.kind)));
  }
  if (phase_ == Phase::kServing && header_.kind != wire::Kind::kPull &&
      header_.kind != wire::Kind::kPush) {
    return absl::InvalidArgumentError(
        fmt::format("a server accepts pulls and pushes, but not frames of kind {}",
                    static_cast<int>(header_.kind)));
  }
  if (phase_ == Phase::kHello && header_.directory_bytes > kHelloBytesMax) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed frame: a hello's directory has at most {} bytes, but this one has {}",
        kHelloBytesMax, header_.directory_bytes));
  }
  to_borrow_ = BytesToBorrow();
  const size_t sizes[] = {header_.directory_bytes, header_.keys * sizeof(uint64_t),
                          header_.value_bytes - to_borrow_};
  AlignedBuffer* const blocks[] = {&in_.directory, &in_.keys, &in_.values};
  body_received_ = 0;
  for (size_t i = 0; i < std::size(blocks); ++i) {
    if (!blocks[i]->Resize(sizes[i])) {
      return NoMemoryFor(sizes[i]);
    }
    const size_t taken = std::min(end_ - begin_, sizes[i]);
    if (taken > 0) std::memcpy(blocks[i]->data(), stage_.data() + begin_, taken);
    begin_ += taken;
    body_received_ += taken;
  }
  in_body_ = true;
  return absl::OkStatus();
}

size_t PeerConnection::BytesToBorrow() const {
  // Gradients are neither indexes nor lengths. If the peer changes them between the check and the
  // use, only the applied values change (docs/wire.md).
  const bool fits = header_.value_bytes <= stream_->lends();
  return header_.kind == wire::Kind::kPush && fits ? header_.value_bytes : 0;
}

absl::StatusOr<bool> PeerConnection::HasBody(WorkLimit* work) {
  if (stream_->lends() > 0) {
    for (const asio::mutable_buffer& block : RestOfBody()) {
      const size_t taken = stream_->ReadNow({static_cast<std::byte*>(block.data()), block.size()});
      work->Spend(taken);
      body_received_ += taken;
      if (taken < block.size()) return false;
    }
  }
  if (body_received_ < in_.size()) return false;
  return to_borrow_ == 0 ? true : HasBorrowed();
}

absl::StatusOr<bool> PeerConnection::HasBorrowed() {
  const std::span<std::byte> values = stream_->Borrow(to_borrow_);
  if (values.empty()) return false;
  const size_t bytes = std::exchange(to_borrow_, 0);
  if (reinterpret_cast<uintptr_t>(values.data()) % alignof(float) == 0) {
    Keep(std::exchange(in_.values, AlignedBuffer::Lent(values)));
    MUSTER_CHECK(in_.values.Resize(bytes));
    return true;
  }
  // After values of two bytes each.
  if (in_.values.capacity() < bytes) in_.values = context_->spares->Take();
  if (!in_.values.Resize(bytes)) return NoMemoryFor(bytes);
  std::memcpy(in_.values.data(), values.data(), bytes);
  stream_->GiveBack();
  return true;
}

std::vector<asio::mutable_buffer> PeerConnection::RestOfBody() {
  std::vector<asio::mutable_buffer> rest;
  size_t skip = body_received_;
  AlignedBuffer* const blocks[] = {&in_.directory, &in_.keys, &in_.values};
  for (size_t i = 0; i < std::size(blocks); ++i) {
    const size_t from = std::min(skip, blocks[i]->size());
    skip -= from;
    if (from == blocks[i]->size()) continue;
    rest.push_back(asio::buffer(blocks[i]->data() + from, blocks[i]->size() - from));
  }
  return rest;
}

void PeerConnection::ReadBody() {
  auto come = [self = shared_from_this()](const error_code& error, size_t bytes) {
    if (error) return self->OnStreamError();
    if (self->phase_ == Phase::kClosing) return;
    self->body_received_ += bytes;
    self->Parse();
  };
  if (std::vector<asio::mutable_buffer> rest = RestOfBody(); !rest.empty()) {
    return stream_->Read(std::move(rest), std::move(come));
  }
  stream_->Await(to_borrow_, std::move(come));
}

absl::Status PeerConnection::Serve() {
  if (phase_ == Phase::kHello) return ServeHello();
  const bool pulls = header_.kind == wire::Kind::kPull;
  request_.Begin(header_, pulls ? RowMemory() : AlignedBuffer());
  request_time_ = {};
  return absl::OkStatus();
}

AlignedBuffer PeerConnection::RowMemory() {
  const size_t before =
      wire::kHeaderBytes + wire::ReplyDirectoryBytes(header_.parts, header_.versions);
  if (out_.empty()) {
    // A worker's next pull is about as large as the last ones. A larger one gets separate memory.
    // After an answer with a text of odd length, the rows wait until the next such text aligns
    // them.
    const std::span<std::byte> room = stream_->Room();
    if (room.size() > before + answer_bytes_ &&
        reinterpret_cast<uintptr_t>(room.data() + before) % alignof(float) == 0) {
      return AlignedBuffer::Lent(room.subspan(before));
    }
  }
  return context_->spares->Take();
}

absl::StatusOr<Progress> PeerConnection::ServeRequest(WorkLimit* work) {
  // Half-done work is completed even if the peer is gone.
  if (!stream_->is_open()) return request_.GoAbandoned(work);
  const auto began = context_->clock->Now();
  absl::StatusOr<Progress> progress = request_.Go(work);
  request_time_ += context_->clock->Now() - began;
  if (progress.ok() && *progress == Progress::kDone) MUSTER_RETURN_IF_ERROR(Answer());
  return progress;
}

bool PeerConnection::AnswerInPlace(const Request::Answer& answer) {
  if (!out_.empty()) return false;
  const std::span<std::byte> room = stream_->Room();
  const size_t before = wire::kHeaderBytes + answer.directory.size();
  if (room.size() < before + answer.value_bytes) return false;
  if (answer.value_bytes > 0 && answer.values.data() != room.data() + before) return false;
  wire::EncodeHeader(answer.header, room.first<wire::kHeaderBytes>());
  std::memcpy(room.data() + wire::kHeaderBytes, answer.directory.data(), answer.directory.size());
  stream_->Wrote(before + answer.value_bytes);
  return true;
}

absl::Status PeerConnection::Answer() {
  Request::Answer answer = request_.TakeAnswer();
  if (!answer.refused.empty()) {
    context_->handler->OnRefused({.peer = PeerName(),
                                  .reason = std::move(answer.refused),
                                  .greeted = true,
                                  .closed = false});
  }
  if (answer.header.kind == wire::Kind::kPullReply) {
    answer_bytes_ = std::max(answer.values.size(), answer_bytes_ / 2);
  }
  context_->handler->OnServed(
      {.received_bytes = wire::kHeaderBytes + in_.size(),
       .sent_bytes = wire::kHeaderBytes + answer.directory.size() + answer.value_bytes,
       .time = request_time_},
      request_.notes());
  if (AnswerInPlace(answer)) {
    if (!answer.values.lent()) Keep(std::move(answer.values));
  } else {
    if (!answer.values.Own()) {
      return absl::ResourceExhaustedError(
          fmt::format("no memory for an answer with {} bytes of rows", answer.value_bytes));
    }
    Send(answer.header, std::move(answer.directory), std::move(answer.values), answer.value_bytes);
    Flush();
  }
  GiveBackValues();
  for (AlignedBuffer* buffer : {&in_.directory, &in_.keys, &in_.values, request_.widened()}) {
    Trim(buffer);
  }
  return absl::OkStatus();
}

void PeerConnection::GiveBackValues() {
  if (in_.values.lent()) in_.values = {};
  stream_->GiveBack();
}

void PeerConnection::Trim(AlignedBuffer* buffer) {
  if (!buffer->lent() && buffer->capacity() > context_->limits->buffer_bytes_kept) {
    context_->discard(std::move(*buffer));
  }
}

void PeerConnection::Keep(AlignedBuffer rows) {
  Trim(&rows);
  static_cast<void>(context_->spares->Keep(std::move(rows)));
}

absl::Status PeerConnection::ServeHello() {
  if (header_.checksum_kind != wire::Checksum::kNone) {
    MUSTER_RETURN_IF_ERROR(CheckChecksum(
        header_, wire::ChecksumOf(in_.directory_text(), in_.keys.words(), Chars(in_.values))));
  }
  MUSTER_ASSIGN_OR_RETURN(const wire::Hello hello, wire::DecodeHello(in_.directory_text()));
  MUSTER_ASSIGN_OR_RETURN(wire::HelloReply reply, context_->handler->OnHello(hello));
  reply.ring_bytes = OfferRings(hello.ring_bytes_max);
  MUSTER_CHECK(phase_ == Phase::kHello);
  phase_ = Phase::kServing;
  deadline_.reset();
  peer_ = Excerpt(hello.peer, kPeerBytesMax);
  SendText(wire::Kind::kHelloReply, wire::EncodeHelloReply(reply));
  Flush();
  return absl::OkStatus();
}

uint32_t PeerConnection::OfferRings(size_t wanted) {
  if (socket_ == nullptr || wanted == 0 || !net::IsUnix(socket_->socket())) return 0;
  return static_cast<uint32_t>(rings_.Make(wanted, PeerName()));
}

absl::Status PeerConnection::EnterRings() {
  if (begin_ != end_) {
    rings_.Drop();
    return absl::FailedPreconditionError(
        "malformed frame: it arrived before the shared memory was set up");
  }
  MUSTER_ASSIGN_OR_RETURN(net::RingMemory memory,
                          rings_.HandOver(socket_->socket().native_handle()));
  net::Socket socket = std::move(std::exchange(socket_, nullptr)->socket());
  stream_ = std::make_unique<net::RingStream>(
      std::move(socket), std::move(memory), net::RingStream::Side::kMadeIt,
      net::RingStream::Spin{context_->limits->spin_max, context_->clock});
  return absl::OkStatus();
}

}  // namespace muster::ps
