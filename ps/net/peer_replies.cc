// PeerConnection's side that writes: frames in order, errors, the end.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "ps/net/internal/peer_connection.h"

namespace muster::ps {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Frames of one vectored write; three buffers each.
constexpr size_t kFramesPerWrite = 16;

}  // namespace

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
  GiveBackValues();  // otherwise, a peer that still writes would wait for room
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
  stream_->Write(std::move(buffers), [self = shared_from_this(), frames = writing_](
                                         const error_code& error, size_t /*bytes*/) {
    if (error) return self->OnStreamError();
    self->OnWritten(frames);
  });
}

void PeerConnection::OnWritten(size_t frames) {
  for (size_t i = 0; i < frames; ++i) {
    Outgoing& frame = out_.front();
    outstanding_bytes_ -= frame.bytes();
    Keep(std::move(frame.values));
    out_.pop_front();
  }
  writing_ = 0;
  if (rings_.waiting()) {
    if (absl::Status status = EnterRings(); !status.ok()) return SendError(status);
    return Parse();
  }
  if (!out_.empty()) {
    Write();
  } else if (phase_ == Phase::kClosing) {
    stream_->ShutdownSend();
    return Linger();
  }
  if (waiting_ && !MustWait()) {
    waiting_ = false;
    Parse();
  }
}

void PeerConnection::Linger() {
  stream_->ReadSome(asio::buffer(stage_),
                    [self = shared_from_this()](const error_code& error, size_t bytes) {
                      self->lingered_bytes_ += bytes;
                      if (error || self->lingered_bytes_ > kLingerBytesMax) return self->Close();
                      self->Linger();
                    });
}

}  // namespace muster::ps
