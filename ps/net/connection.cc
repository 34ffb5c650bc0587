#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/net/internal/connection.h"

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

std::string_view Chars(const AlignedBuffer& buffer, size_t bytes) {
  return {reinterpret_cast<const char*>(buffer.data()), bytes};
}

}  // namespace

Connection::Connection(Socket socket, std::string origin, const ConnectionContext* context,
                       std::function<void(Connection*)> on_closed)
    : socket_(std::move(socket)),
      origin_(std::move(origin)),
      context_(context),
      on_closed_(std::move(on_closed)) {}

void Connection::Start() {
  deadline_ = context_->clock->Now() + context_->limits->hello_timeout;
  ReadStage();
}

void Connection::Close() {
  error_code ignored;
  socket_.close(ignored);
  if (auto on_closed = std::exchange(on_closed_, nullptr)) on_closed(this);
}

void Connection::EndIfOverdue(TimePoint now) {
  if (!deadline_.has_value() || now < *deadline_) return;
  if (phase_ == Phase::kClosing) return Close();
  SendError(absl::DeadlineExceededError(
      fmt::format("no hello came within {} ms", context_->limits->hello_timeout.count())));
}

std::string Connection::PeerName() const {
  return peer_.empty() ? origin_ : fmt::format("{} ({})", peer_, origin_);
}

void Connection::ReadStage() {
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

void Connection::Parse() {
  while (phase_ != Phase::kClosing) {
    if (MustWait()) {
      waiting_ = true;
      return;
    }
    if (end_ - begin_ < wire::kHeaderBytes) return ReadStage();
    auto header = wire::DecodeHeader(
        std::span<const std::byte, wire::kHeaderBytes>(stage_.data() + begin_, wire::kHeaderBytes));
    if (!header.ok()) {
      header_.request = 0;  // the error is of no request that is known
      return SendError(header.status());
    }
    begin_ += wire::kHeaderBytes;
    header_ = *header;
    if (absl::Status status = BeginBody(); !status.ok()) return SendError(status);
    const size_t body = directory_in_.size() + keys_in_.size() + values_in_.size();
    if (body_received_ < body) return ReadBody();
    if (absl::Status status = Serve(); !status.ok()) return SendError(status);
  }
}

absl::Status Connection::BeginBody() {
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
  AlignedBuffer* const blocks[] = {&directory_in_, &keys_in_, &values_in_};
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

void Connection::ReadBody() {
  std::array<asio::mutable_buffer, 3> rest;
  size_t skip = body_received_;
  AlignedBuffer* const blocks[] = {&directory_in_, &keys_in_, &values_in_};
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

std::string_view Connection::directory() const {
  return Chars(directory_in_, directory_in_.size());
}

absl::Status Connection::CheckChecksum() {
  if (header_.checksum_kind == wire::Checksum::kNone) return absl::OkStatus();
  const uint64_t checksum =
      wire::ChecksumOf(directory(), keys_in_.words(), Chars(values_in_, values_in_.size()));
  if (checksum == header_.checksum) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("malformed frame: its checksum is {:#018x}, the header says {:#018x}", checksum,
                  header_.checksum));
}

absl::Status Connection::Serve() {
  if (phase_ == Phase::kHello) {
    MUSTER_RETURN_IF_ERROR(CheckChecksum());
    MUSTER_RETURN_IF_ERROR(ServeHello());
  } else {
    MUSTER_RETURN_IF_ERROR(ServeRequest());
  }
  Flush();
  for (AlignedBuffer* buffer : {&directory_in_, &keys_in_, &values_in_, &widened_}) {
    buffer->ReleaseIfLarger(context_->limits->buffer_bytes_kept);
  }
  return absl::OkStatus();
}

absl::Status Connection::ServeRequest() {
  const auto began = context_->clock->Now();
  MUSTER_RETURN_IF_ERROR(CheckChecksum());
  MUSTER_RETURN_IF_ERROR(header_.kind == wire::Kind::kPull ? ServePull() : ServePush());
  const size_t body = directory_in_.size() + keys_in_.size() + values_in_.size();
  context_->handler->OnServed({.received_bytes = wire::kHeaderBytes + body,
                               .sent_bytes = out_.back().bytes(),
                               .time = context_->clock->Now() - began});
  return absl::OkStatus();
}

absl::Status Connection::ServeHello() {
  MUSTER_ASSIGN_OR_RETURN(const wire::Hello hello, wire::DecodeHello(directory()));
  MUSTER_ASSIGN_OR_RETURN(const wire::HelloReply reply, context_->handler->OnHello(hello));
  MUSTER_CHECK(phase_ == Phase::kHello);
  phase_ = Phase::kServing;
  deadline_.reset();
  peer_ = Excerpt(hello.peer, kPeerBytesMax);
  Send(wire::Kind::kHelloReply, wire::EncodeHelloReply(reply), 0, {}, 0);
  return absl::OkStatus();
}

absl::Status Connection::ServePull() {
  MUSTER_ASSIGN_OR_RETURN(const auto parts, wire::DecodePull(header_, directory()));
  PullReply reply;
  reply.values = std::move(spare_values_);
  if (!reply.values.Resize(0)) return absl::InternalError("an empty buffer cannot fail");
  context_->handler->OnPull(
      {.parts = parts, .keys = keys_in_.words(), .encoding = header_.encoding}, &reply);
  size_t value_bytes = reply.values.size();
  if (header_.encoding != wire::Encoding::kFloat32) {
    // In place: the bytes written never pass those still to be read.
    const std::span<const float> values = reply.values.floats();
    value_bytes = values.size() * wire::BytesPerValue(header_.encoding);
    wire::EncodeValues(values, header_.encoding, {reply.values.data(), value_bytes});
  }
  TellRefused(reply.parts, reply.text);
  const auto count = static_cast<uint32_t>(reply.parts.size());
  Send(wire::Kind::kPullReply, wire::EncodeReply(reply.parts, reply.text), count,
       std::move(reply.values), value_bytes);
  return absl::OkStatus();
}

absl::Status Connection::ServePush() {
  MUSTER_ASSIGN_OR_RETURN(const auto parts, wire::DecodePush(header_, directory()));
  std::span<const float> values;
  if (header_.encoding == wire::Encoding::kFloat32) {
    values = values_in_.floats();
  } else {
    const size_t count = values_in_.size() / wire::BytesPerValue(header_.encoding);
    if (!widened_.Resize(count * sizeof(float))) {
      return absl::ResourceExhaustedError(fmt::format("no memory to widen {} values", count));
    }
    wire::DecodeValues({values_in_.data(), values_in_.size()}, header_.encoding, widened_.floats());
    values = widened_.floats();
  }
  PushReply reply;
  context_->handler->OnPush({.parts = parts, .keys = keys_in_.words(), .values = values}, &reply);
  TellRefused(reply.parts, reply.text);
  const auto count = static_cast<uint32_t>(reply.parts.size());
  Send(wire::Kind::kPushReply, wire::EncodeReply(reply.parts, reply.text), count, {}, 0);
  return absl::OkStatus();
}

void Connection::Send(wire::Kind kind, std::string directory, uint32_t parts, AlignedBuffer values,
                      size_t value_bytes) {
  wire::Header header;
  header.kind = kind;
  header.request = header_.request;
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.parts = parts;
  header.value_bytes = value_bytes;
  header.checksum_kind = header_.checksum_kind;
  if (kind == wire::Kind::kPullReply) header.encoding = header_.encoding;
  if (header.checksum_kind == wire::Checksum::kXxh3) {
    header.checksum = wire::ChecksumOf(directory, {}, Chars(values, value_bytes));
  }
  Outgoing& frame = out_.emplace_back();
  wire::EncodeHeader(header, frame.header);
  frame.directory = std::move(directory);
  frame.values = std::move(values);
  frame.value_bytes = value_bytes;
  outstanding_bytes_ += frame.bytes();
}

void Connection::Flush() {
  if (writing_ == 0) Write();
}

void Connection::TellRefused(const std::vector<wire::PartReply>& parts, const std::string& text) {
  if (std::ranges::find(parts, wire::PartCode::kBadRequest, &wire::PartReply::code) ==
      parts.end()) {
    return;
  }
  context_->handler->OnRefused(
      {.peer = PeerName(), .reason = text, .greeted = true, .closed = false});
}

void Connection::SendError(const absl::Status& status) {
  MUSTER_CHECK(phase_ != Phase::kClosing);
  context_->handler->OnRefused({.peer = PeerName(),
                                .reason = std::string(Message(status)),
                                .greeted = phase_ == Phase::kServing,
                                .closed = true});
  phase_ = Phase::kClosing;
  deadline_ = context_->clock->Now() + context_->limits->hello_timeout;
  Send(wire::Kind::kError, wire::EncodeError(Message(status)), 0, {}, 0);
  Flush();
}

void Connection::Write() {
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

void Connection::OnWritten(size_t frames) {
  for (size_t i = 0; i < frames; ++i) {
    Outgoing& frame = out_.front();
    outstanding_bytes_ -= frame.bytes();
    if (frame.values.capacity() > spare_values_.capacity()) {
      spare_values_ = std::move(frame.values);
      spare_values_.ReleaseIfLarger(context_->limits->buffer_bytes_kept);
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

void Connection::Linger() {
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
