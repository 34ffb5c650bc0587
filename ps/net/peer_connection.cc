#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/net/internal/peer_connection.h"

namespace muster::ps {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Frames of one vectored write; three buffers each.
constexpr size_t kFramesPerWrite = 16;

/// Four texts and their lengths: all that a stranger can make the server keep for it.
constexpr size_t kHelloBytesMax = 4 * (sizeof(uint32_t) + wire::kTextBytesMax);
/// What messages repeat of the name in a hello.
constexpr size_t kPeerBytesMax = 80;

std::string_view Chars(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

}  // namespace

PeerConnection::PeerConnection(Socket socket, std::string origin, const ConnectionContext* context,
                               std::function<void(PeerConnection*)> on_closed)
    : socket_(std::move(socket)),
      origin_(std::move(origin)),
      context_(context),
      on_closed_(std::move(on_closed)),
      request_(context->handler, &in_) {}

PeerConnection::~PeerConnection() {
  for (AlignedBuffer* buffer : {&in_.directory, &in_.keys, &in_.values, request_.widened()}) {
    Trim(buffer);
  }
  for (Outgoing& frame : out_) Trim(&frame.values);
}

void PeerConnection::Start() {
  deadline_ = context_->clock->Now() + context_->limits->hello_timeout;
  ReadStage();
}

void PeerConnection::Close() {
  error_code ignored;
  socket_.close(ignored);
  if (auto on_closed = std::exchange(on_closed_, nullptr)) on_closed(this);
}

void PeerConnection::EndIfOverdue(TimePoint now) {
  if (!deadline_.has_value() || now < *deadline_) return;
  if (phase_ == Phase::kClosing) return Close();
  SendError(absl::DeadlineExceededError(
      fmt::format("no hello came within {} ms", context_->limits->hello_timeout.count())));
}

std::string PeerConnection::PeerName() const {
  return peer_.empty() ? origin_ : fmt::format("{} ({})", peer_, origin_);
}

void PeerConnection::ReadStage() {
  if (begin_ > 0) {
    std::memmove(stage_.data(), stage_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  socket_.async_read_some(asio::buffer(stage_.data() + end_, stage_.size() - end_),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            if (error) return self->Close();
                            if (self->phase_ == Phase::kClosing) return;
                            self->end_ += bytes;
                            self->Parse();
                          });
}

void PeerConnection::PostSlice() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Parse(); });
}

void PeerConnection::Parse() {
  WorkLimit work(context_->limits->slice_bytes);
  while (phase_ != Phase::kClosing) {
    if (request_.under_work()) {
      const absl::StatusOr<Progress> progress = ServeRequest(&work);
      if (!progress.ok()) return SendError(progress.status());
      if (*progress == Progress::kMore) return PostSlice();
    }
    if (!socket_.is_open()) return;
    if (MustWait()) {
      waiting_ = true;
      return;
    }
    if (end_ - begin_ < wire::kHeaderBytes) return ReadStage();
    if (work.spent()) return PostSlice();
    if (absl::Status status = TakeHeader(); !status.ok()) return SendError(status);
    if (body_received_ < in_.size()) return ReadBody();
    if (absl::Status status = Serve(); !status.ok()) return SendError(status);
  }
}

absl::Status PeerConnection::TakeHeader() {
  auto header = wire::DecodeHeader(
      std::span<const std::byte, wire::kHeaderBytes>(stage_.data() + begin_, wire::kHeaderBytes));
  if (!header.ok()) {
    header_.request = 0;  // the error is of no request that is known
    return header.status();
  }
  begin_ += wire::kHeaderBytes;
  header_ = *header;
  return BeginBody();
}

absl::Status PeerConnection::BeginBody() {
  if (phase_ == Phase::kHello && header_.kind != wire::Kind::kHello) {
    return absl::FailedPreconditionError(
        fmt::format("the first frame of a connection must be a hello, this one is of kind {}",
                    static_cast<int>(header_.kind)));
  }
  if (phase_ == Phase::kServing && header_.kind != wire::Kind::kPull &&
      header_.kind != wire::Kind::kPush) {
    return absl::InvalidArgumentError(fmt::format(
        "a server takes pulls and pushes, not frames of kind {}", static_cast<int>(header_.kind)));
  }
  if (phase_ == Phase::kHello && header_.directory_bytes > kHelloBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("malformed frame: a hello has a directory of at most {} bytes, this one of {}",
                    kHelloBytesMax, header_.directory_bytes));
  }
  const size_t sizes[] = {header_.directory_bytes, header_.keys * sizeof(uint64_t),
                          header_.value_bytes};
  AlignedBuffer* const blocks[] = {&in_.directory, &in_.keys, &in_.values};
  body_received_ = 0;
  for (size_t i = 0; i < std::size(blocks); ++i) {
    if (!blocks[i]->Resize(sizes[i])) {
      return absl::ResourceExhaustedError(
          fmt::format("no memory for a frame with a block of {} bytes", sizes[i]));
    }
    const size_t taken = std::min(end_ - begin_, sizes[i]);
    if (taken > 0) std::memcpy(blocks[i]->data(), stage_.data() + begin_, taken);
    begin_ += taken;
    body_received_ += taken;
  }
  return absl::OkStatus();
}

void PeerConnection::ReadBody() {
  std::array<asio::mutable_buffer, 3> rest;
  size_t skip = body_received_;
  AlignedBuffer* const blocks[] = {&in_.directory, &in_.keys, &in_.values};
  for (size_t i = 0; i < std::size(blocks); ++i) {
    const size_t from = std::min(skip, blocks[i]->size());
    skip -= from;
    rest[i] = asio::buffer(blocks[i]->data() + from, blocks[i]->size() - from);
  }
  asio::async_read(socket_, rest,
                   [self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                     if (error) return self->Close();
                     if (self->phase_ == Phase::kClosing) return;
                     if (absl::Status status = self->Serve(); !status.ok()) {
                       return self->SendError(status);
                     }
                     self->Parse();
                   });
}

absl::Status PeerConnection::Serve() {
  if (phase_ == Phase::kHello) return ServeHello();
  const bool pulls = header_.kind == wire::Kind::kPull;
  request_.Begin(header_, pulls ? std::move(spare_values_) : AlignedBuffer());
  request_time_ = {};
  return absl::OkStatus();
}

absl::StatusOr<Progress> PeerConnection::ServeRequest(WorkLimit* work) {
  // What is half done is brought to its end for nobody, too.
  if (!socket_.is_open()) return request_.GoAbandoned(work);
  const auto began = context_->clock->Now();
  absl::StatusOr<Progress> progress = request_.Go(work);
  request_time_ += context_->clock->Now() - began;
  if (progress.ok() && *progress == Progress::kDone) Answer();
  return progress;
}

void PeerConnection::Answer() {
  Request::Answer answer = request_.TakeAnswer();
  if (!answer.refused.empty()) {
    context_->handler->OnRefused({.peer = PeerName(),
                                  .reason = std::move(answer.refused),
                                  .greeted = true,
                                  .closed = false});
  }
  Send(answer.header, std::move(answer.directory), std::move(answer.values), answer.value_bytes);
  context_->handler->OnServed({.received_bytes = wire::kHeaderBytes + in_.size(),
                               .sent_bytes = out_.back().bytes(),
                               .time = request_time_},
                              request_.notes());
  Flush();
  for (AlignedBuffer* buffer : {&in_.directory, &in_.keys, &in_.values, request_.widened()}) {
    Trim(buffer);
  }
}

void PeerConnection::Trim(AlignedBuffer* buffer) {
  if (buffer->capacity() > context_->limits->buffer_bytes_kept) {
    context_->discard(std::move(*buffer));
  }
}

absl::Status PeerConnection::ServeHello() {
  if (header_.checksum_kind != wire::Checksum::kNone) {
    MUSTER_RETURN_IF_ERROR(CheckChecksum(
        header_, wire::ChecksumOf(in_.directory_text(), in_.keys.words(), Chars(in_.values))));
  }
  MUSTER_ASSIGN_OR_RETURN(const wire::Hello hello, wire::DecodeHello(in_.directory_text()));
  MUSTER_ASSIGN_OR_RETURN(const wire::HelloReply reply, context_->handler->OnHello(hello));
  MUSTER_CHECK(phase_ == Phase::kHello);
  phase_ = Phase::kServing;
  deadline_.reset();
  peer_ = Excerpt(hello.peer, kPeerBytesMax);
  SendText(wire::Kind::kHelloReply, wire::EncodeHelloReply(reply));
  Flush();
  return absl::OkStatus();
}

void PeerConnection::Send(const wire::Header& header, std::string directory, AlignedBuffer values,
                          size_t value_bytes) {
  Outgoing& frame = out_.emplace_back();
  wire::EncodeHeader(header, frame.header);
  frame.directory = std::move(directory);
  frame.values = std::move(values);
  frame.value_bytes = value_bytes;
  outstanding_bytes_ += frame.bytes();
}

void PeerConnection::SendText(wire::Kind kind, std::string directory) {
  wire::Header header;
  header.kind = kind;
  header.request = header_.request;
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.checksum_kind = header_.checksum_kind;
  if (header.checksum_kind == wire::Checksum::kXxh3) {
    header.checksum = wire::ChecksumOf(directory, {}, {});
  }
  Send(header, std::move(directory), {}, 0);
}

void PeerConnection::Flush() {
  if (writing_ == 0) Write();
}

void PeerConnection::SendError(const absl::Status& status) {
  MUSTER_CHECK(phase_ != Phase::kClosing);
  context_->handler->OnRefused({.peer = PeerName(),
                                .reason = std::string(Message(status)),
                                .greeted = phase_ == Phase::kServing,
                                .closed = true});
  phase_ = Phase::kClosing;
  deadline_ = context_->clock->Now() + context_->limits->hello_timeout;
  SendText(wire::Kind::kError, wire::EncodeError(Message(status)));
  Flush();
}

void PeerConnection::Write() {
  writing_ = std::min(out_.size(), kFramesPerWrite);
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(3 * writing_);
  for (size_t i = 0; i < writing_; ++i) {
    const Outgoing& frame = out_[i];
    buffers.push_back(asio::buffer(frame.header));
    buffers.push_back(asio::buffer(frame.directory));
    if (frame.value_bytes > 0) {
      buffers.push_back(asio::buffer(frame.values.data(), frame.value_bytes));
    }
  }
  asio::async_write(
      socket_, std::move(buffers),
      [self = shared_from_this(), frames = writing_](const error_code& error, size_t /*bytes*/) {
        if (error) return self->Close();
        self->OnWritten(frames);
      });
}

void PeerConnection::OnWritten(size_t frames) {
  for (size_t i = 0; i < frames; ++i) {
    Outgoing& frame = out_.front();
    outstanding_bytes_ -= frame.bytes();
    if (frame.values.capacity() > spare_values_.capacity()) {
      spare_values_ = std::move(frame.values);
      Trim(&spare_values_);
    }
    out_.pop_front();
  }
  writing_ = 0;
  if (!out_.empty()) {
    Write();
  } else if (phase_ == Phase::kClosing) {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    return Linger();
  }
  if (waiting_ && !MustWait()) {
    waiting_ = false;
    Parse();
  }
}

void PeerConnection::Linger() {
  socket_.async_read_some(asio::buffer(stage_),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            self->lingered_bytes_ += bytes;
                            if (error || self->lingered_bytes_ > kLingerBytesMax) {
                              return self->Close();
                            }
                            self->Linger();
                          });
}

}  // namespace muster::ps
