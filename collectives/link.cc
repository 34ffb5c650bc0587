#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "collectives/internal/link.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Frames that leave in one write.
constexpr size_t kFramesPerWrite = 8;
/// Of a payload, so that a slow peer is seen to get on.
constexpr size_t kPartBytes = size_t{4} << 20;

}  // namespace

template <typename Then>
net::ByteStream::Handler Link::Guarded(Then then) {
  return [self = shared_from_this(), then](const error_code& error, size_t /*bytes*/) {
    if (!self->is_open()) return;
    if (!error) return then(self.get());
    const std::string failure(self->stream_->failure());
    self->End(failure.empty() ? error.message() : failure);
  };
}

void Link::Send(FrameHeader header, std::span<const std::byte> payload, Sent sent) {
  if (!is_open()) return;
  header.payload_bytes = payload.size();
  auto frame = std::make_unique<Outgoing>();
  frame->header = header;
  frame->payload = payload;
  frame->sent = std::move(sent);
  queue_.push_back(std::move(frame));
  WriteQueued();
}

void Link::SendMessage(FrameKind kind, std::string message) {
  if (!is_open()) return;
  auto frame = std::make_unique<Outgoing>();
  frame->header.kind = kind;
  frame->message = std::move(message);
  frame->payload = std::as_bytes(std::span(frame->message));
  frame->header.payload_bytes = frame->payload.size();
  queue_.push_back(std::move(frame));
  WriteQueued();
}

void Link::WriteQueued() {
  if (!writing_.empty() || queue_.empty()) return;
  std::vector<asio::const_buffer> buffers = stream_->SpareList();
  while (!queue_.empty() && writing_.size() < kFramesPerWrite) {
    Outgoing& frame = *writing_.emplace_back(std::move(queue_.front()));
    queue_.pop_front();
    if (checked_) {
      EncodeCheckedFrameHeader(frame.header, frame.payload, frame.header_bytes);
    } else {
      EncodeFrameHeader(frame.header, frame.header_bytes);
    }
    buffers.emplace_back(frame.header_bytes.data(), frame.header_bytes.size());
    if (!frame.payload.empty()) buffers.emplace_back(frame.payload.data(), frame.payload.size());
  }
  stream_->Write(std::move(buffers), Guarded([](Link* self) { self->OnWritten(); }));
}

void Link::OnWritten() {
  const auto written = std::exchange(writing_, {});
  WriteQueued();
  for (const std::unique_ptr<Outgoing>& frame : written) {
    if (frame->sent && is_open()) frame->sent();
  }
}

void Link::ReadHeader() {
  stream_->ReadOne(asio::buffer(header_bytes_), Guarded([](Link* self) {
                     absl::StatusOr<FrameHeader> header = DecodeFrameHeader(self->header_bytes_);
                     if (!header.ok()) return self->End(Message(header.status()));
                     if (header->checked != self->checked_) {
                       return self->End("it sent a frame without the agreed kind of checksum");
                     }
                     self->header_ = *header;
                     self->OnHeader();
                   }));
}

void Link::OnHeader() {
  const absl::StatusOr<std::optional<std::span<std::byte>>> place = handler_->OnHeader(header_);
  if (!is_open()) return;
  if (!place.ok()) return End(Message(place.status()));
  stopped_ = !place->has_value();
  if (stopped_) return;
  place_ = **place;
  if (place_.empty() && Lends(header_)) {
    return stream_->Await(header_.payload_bytes, Guarded([](Link* self) { self->OnLent(); }));
  }
  MUSTER_CHECK(place_.size() == header_.payload_bytes);
  if (place_.empty()) return OnPayload();
  ReadPayload(place_);
}

void Link::ReadPayload(std::span<std::byte> left) {
  const std::span<std::byte> part = left.first(std::min(left.size(), kPartBytes));
  left = left.subspan(part.size());
  stream_->ReadOne(asio::buffer(part.data(), part.size()), Guarded([left](Link* self) {
                     if (left.empty()) return self->OnPayload();
                     self->handler_->OnPart();
                     if (self->is_open()) self->ReadPayload(left);
                   }));
}

void Link::OnPayload() {
  absl::Status status = checked_ ? CheckFrame(header_, place_) : absl::OkStatus();
  if (status.ok()) status = handler_->OnPayload(header_);
  OnTaken(status);
}

void Link::OnLent() {
  const std::span<const std::byte> payload = stream_->Borrow(header_.payload_bytes);
  if (payload.empty()) return End("it took back what it had sent");
  const absl::Status status = handler_->OnLent(header_, payload);
  if (is_open()) stream_->GiveBack();
  OnTaken(status);
}

void Link::OnTaken(const absl::Status& status) {
  if (!is_open()) return;
  if (!status.ok()) return End(Message(status));
  ReadHeader();
}

void Link::Resume() {
  if (is_open() && std::exchange(stopped_, false)) OnHeader();
}

void Link::End(std::string_view why) {
  Handler* const handler = handler_;
  const auto self = shared_from_this();
  Close(false);
  handler->OnEnded(why);
}

void Link::Close(bool leave) {
  if (!is_open()) return;
  if (leave && writing_.empty()) {
    // A frame of this size fits into the socket, unless the peer does not read at all.
    queue_.clear();
    SendMessage(FrameKind::kLeave, {});
  }
  handler_ = nullptr;
  queue_.clear();
  stream_->Close();
}

}  // namespace muster::collectives::internal
