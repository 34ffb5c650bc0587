#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "base/address.h"
#include "base/descriptors.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"
#include "net/endpoints.h"
#include "net/ring_stream.h"
#include "net/tls_stream.h"
#include "worker_sdk/net/internal/lane_connection.h"

namespace muster::sdk::net_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Bytes that one step of a read or write moves at most.
constexpr size_t kStepBytes = 4u << 20;
// Frames that leave in one write.
constexpr size_t kFramesPerWrite = 8;
constexpr char kDamaged[] = "the checksum of an answer is wrong";

absl::StatusOr<net::RingMemory> OpenRings(OwnedFd received, size_t ring_bytes) {
  MUSTER_FAILPOINT_OR_RETURN("rings.before-open");
  return net::RingMemory::Open(std::move(received), ring_bytes);
}

}  // namespace

LaneConnection::LaneConnection(asio::any_io_executor executor, Target target,
                               const DataClient::Options* options, DataClient::Listener* listener,
                               Sharing* sharing, const Clock* clock,
                               std::function<void(LaneConnection*)> closed)
    : target_(std::move(target)),
      options_(options),
      listener_(listener),
      sharing_(sharing),
      clock_(clock),
      closed_handler_(std::move(closed)),
      socket_(executor),
      resolver_(executor),
      timer_(executor) {}

/// A handler that keeps the connection alive, does nothing after it is closed, and closes it on an
/// error. If `handler` holds nothing, it is small enough for streams to store it without extra
/// memory.
template <typename Handler>
struct LaneConnection::Guard {
  void operator()(error_code error, size_t /*bytes*/ = 0) {
    if (self->closed_) return;
    if (error) {
      const std::string failure(self->stream_->failure());
      return self->Close(failure.empty() ? error.message() : failure);
    }
    self->last_progress_ = self->clock_->Now();
    handler(self.get());
  }
  std::shared_ptr<LaneConnection> self;
  [[no_unique_address]] Handler handler;
};

template <typename Handler>
LaneConnection::Guard<Handler> LaneConnection::Guarded(Handler handler) {
  return {shared_from_this(), handler};
}

void LaneConnection::Start() {
  last_progress_ = clock_->Now();
  WatchSilence();
  TryAddress(0);
}

void LaneConnection::OnConnected() {
  error_code error;
  Stream::endpoint local = socket_.local_endpoint(error), remote = socket_.remote_endpoint(error);
  const bool same_machine = local.protocol().family() == AF_UNIX;
  if (!same_machine) {
    // A connection to a port without a listener can connect to itself (simultaneous open).
    if (!error && local == remote) return Close("nothing listens there");
    socket_.set_option(asio::ip::tcp::no_delay(true), error);
    DetectVanishedPeer(socket_.native_handle());
  } else if (!IsOfOurUser(socket_.native_handle())) {
    sharing_->tcp_only.insert(target_.lane);
    socket_.close(error);
    last_error_ = "a process of another user listens at the server's path";
    return TryAddress(address_ + 1);
  } else {
    socket_.set_option(asio::socket_base::send_buffer_size(options_->unix_buffer_bytes), error);
  }
  if (!same_machine && options_->tls) {
    auto tls = std::make_unique<net::TlsStream>(std::move(socket_), options_->tls().get(),
                                                net::TlsStream::Side::kClient, kStepBytes);
    net::TlsStream* const raw = tls.get();
    stream_ = std::move(tls);
    return raw->Handshake(Guarded([](LaneConnection* self) { self->SendHello(); }));
  }
  auto plain = std::make_unique<net::SocketStream>(std::move(socket_), kStepBytes);
  if (same_machine) plain_ = plain.get();
  stream_ = std::move(plain);
  SendHello();
}

void LaneConnection::SendHello() {
  const bool may_share = plain_ != nullptr && sharing_->wanted;
  auto hello = std::make_unique<RequestFrame>();
  BuildHello({.job = options_->job.name,
              .job_id = options_->job.id,
              .peer = options_->worker,
              .software = fmt::format("muster {}", kVersion),
              .ring_bytes_max = may_share ? options_->ring_bytes_max : 0},
             hello.get());
  frames_.push_back(std::move(hello));
  std::vector<asio::const_buffer> buffers;
  for (auto piece : frames_.back()->pieces) buffers.emplace_back(piece.data(), piece.size());
  writing_ = true;
  stream_->Write(std::move(buffers), Guarded([](LaneConnection* self) { self->OnWritten(); }));
  ReadHeader();
}

void LaneConnection::Send(SendRequest request) {
  if (closed_) return;
  // Silence counts from the moment when there is something to answer.
  if (queue_.empty() && outstanding_.empty()) last_progress_ = clock_->Now();
  queue_.push_back(std::move(request));
  WriteQueued();
}

std::unique_ptr<RequestFrame> LaneConnection::BuildNext() {
  std::unique_ptr<RequestFrame> frame;
  if (spare_frames_.empty()) {
    frame = std::make_unique<RequestFrame>();
  } else {
    frame = std::move(spare_frames_.back());
    spare_frames_.pop_back();
  }
  SendRequest request = std::move(queue_.front());
  queue_.pop_front();
  BuildFrame(request, options_->encoding,
             stream_->lossless() ? wire::Checksum::kNone : wire::Checksum::kXxh3, frame.get());
  const RequestId id = request.id;
  outstanding_.emplace(id, std::move(request));
  return frame;
}

void LaneConnection::KeepFrame(std::unique_ptr<RequestFrame> frame) {
  frame->batch.reset();
  if (spare_frames_.size() < kFramesPerWrite) spare_frames_.push_back(std::move(frame));
}

bool LaneConnection::WriteInPlace(const RequestFrame& frame) {
  const std::span<std::byte> room = stream_->Room();
  size_t bytes = 0;
  for (const auto piece : frame.pieces) bytes += piece.size();
  if (room.size() < bytes) return false;
  std::byte* to = room.data();
  for (const auto piece : frame.pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  stream_->Wrote(bytes);
  return true;
}

void LaneConnection::WriteQueued() {
  if (!greeted_ || writing_) return;
  while (!queue_.empty() && frames_.empty()) {
    std::unique_ptr<RequestFrame> frame = BuildNext();
    if (WriteInPlace(*frame)) {
      KeepFrame(std::move(frame));
    } else {
      frames_.push_back(std::move(frame));
    }
  }
  if (frames_.empty()) return;
  while (!queue_.empty() && frames_.size() < kFramesPerWrite) {
    frames_.push_back(BuildNext());
  }
  std::vector<asio::const_buffer> buffers = stream_->SpareList();
  for (const auto& frame : frames_) {
    for (auto piece : frame->pieces) buffers.emplace_back(piece.data(), piece.size());
  }
  writing_ = true;
  stream_->Write(std::move(buffers), Guarded([](LaneConnection* self) { self->OnWritten(); }));
}

void LaneConnection::OnWritten() {
  writing_ = false;
  for (std::unique_ptr<RequestFrame>& frame : frames_) KeepFrame(std::move(frame));
  frames_.clear();
  WriteQueued();
}

bool LaneConnection::BeginPolling() {
  return greeted_ && !closed_ && stream_->BeginPolling();
}

bool LaneConnection::Poll() {
  return !closed_ && stream_->Poll();
}

void LaneConnection::EndPolling() {
  if (!closed_) stream_->EndPolling();
}

void LaneConnection::Read(asio::mutable_buffer into, void (LaneConnection::*then)()) {
  then_ = then;
  stream_->ReadOne(into, Guarded([](LaneConnection* self) { (self->*self->then_)(); }));
}

void LaneConnection::ReadHeader() {
  Read(asio::buffer(header_bytes_), &LaneConnection::OnHeader);
}

void LaneConnection::OnHeader() {
  absl::StatusOr<wire::Header> header = wire::DecodeHeader(header_bytes_);
  if (!header.ok()) return Close(Message(header.status()));
  header_ = *header;
  if (header_.keys != 0) return Close("it answered with keys");
  directory_.resize(header_.directory_bytes);
  Read(asio::buffer(directory_), &LaneConnection::OnDirectory);
}

void LaneConnection::OnDirectory() {
  if (header_.kind == wire::Kind::kError) {
    absl::StatusOr<std::string> text = wire::DecodeError(directory_);
    // The path exists here, but the server of another job may listen at it.
    if (!greeted_ && net::IsUnixAddress(target_.addresses[address_])) {
      sharing_->tcp_only.insert(target_.lane);
    }
    // An error before the greeting is about the connection. A newer map may then help.
    const bool names_request = greeted_ && outstanding_.contains(RequestId(header_.request));
    return Close(text.ok() ? *text : std::string(Message(text.status())),
                 names_request ? std::optional(RequestId(header_.request)) : std::nullopt);
  }
  absl::Status status = header_.value_bytes == 0 ? CheckChecksum({}) : absl::OkStatus();
  if (status.ok()) status = greeted_ ? OnReplyDirectory() : OnHelloReply();
  if (status.ok()) return;
  // The path exists here, but not for this server: the name of its socket is in use here, too.
  if (!greeted_ && net::IsUnixAddress(target_.addresses[address_])) {
    sharing_->tcp_only.insert(target_.lane);
  }
  Close(Message(status));
}

absl::Status LaneConnection::OnHelloReply() {
  if (header_.kind != wire::Kind::kHelloReply || header_.value_bytes != 0) {
    return absl::InvalidArgumentError("it did not greet");
  }
  MUSTER_ASSIGN_OR_RETURN(wire::HelloReply reply, wire::DecodeHelloReply(directory_));
  if (reply.server_incarnation != target_.lane.incarnation.value()) {
    return absl::UnavailableError(fmt::format("its incarnation is {}, the map says {}",
                                              reply.server_incarnation,
                                              target_.lane.incarnation.value()));
  }
  if (reply.partition_count != options_->partition_count || reply.lane != target_.lane.lane) {
    return absl::FailedPreconditionError(fmt::format(
        "it is lane {} of a job with {} partitions; expected lane {} and {}", reply.lane,
        reply.partition_count, target_.lane.lane, options_->partition_count));
  }
  ring_bytes_ = reply.ring_bytes;
  const uint32_t asked = plain_ == nullptr ? 0 : options_->ring_bytes_max;
  if (ring_bytes_ > asked) {
    return absl::InvalidArgumentError(
        fmt::format("it shares rings of {} bytes, asked for were {}", ring_bytes_, asked));
  }
  if (ring_bytes_ == 0) {
    Greeted();
  } else {
    AwaitRings();
  }
  return absl::OkStatus();
}

void LaneConnection::AwaitRings() {
  plain_->socket().async_wait(Stream::socket::wait_read, Guarded([](LaneConnection* self) {
                                const absl::Status status = self->EnterRings();
                                if (absl::IsUnavailable(status)) return self->AwaitRings();
                                if (status.ok()) return self->Greeted();
                                // The next connection does not share memory.
                                self->sharing_->wanted = false;
                                self->Close(Message(status));
                              }));
}

absl::Status LaneConnection::EnterRings() {
  MUSTER_ASSIGN_OR_RETURN(OwnedFd received,
                          net::ReceiveDescriptor(plain_->socket().native_handle()));
  absl::StatusOr<net::RingMemory> memory = OpenRings(std::move(received), ring_bytes_);
  if (!memory.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("its shared memory is of no use: {}", Message(memory.status())));
  }
  net::Socket socket = std::move(std::exchange(plain_, nullptr)->socket());
  stream_ =
      std::make_unique<net::RingStream>(std::move(socket), *std::move(memory),
                                        net::RingStream::Side::kOpenedIt, net::RingStream::Spin{});
  bytes_moved_ = 0;
  MUSTER_FAILPOINT("rings.after-open");
  return absl::OkStatus();
}

void LaneConnection::Greeted() {
  greeted_ = true;
  listener_->OnConnected(target_.lane);
  WriteQueued();
  ReadHeader();
}

absl::Status LaneConnection::OnReplyDirectory() {
  auto it = outstanding_.find(RequestId(header_.request));
  if (it == outstanding_.end()) {
    return absl::InvalidArgumentError(
        fmt::format("it answered request {}, which was not asked", header_.request));
  }
  MUSTER_RETURN_IF_ERROR(wire::DecodeReply(header_, directory_, &reply_));
  MUSTER_RETURN_IF_ERROR(CheckReply(it->second, header_, reply_, &floats_));
  rows_.reset();
  if (floats_ == 0) {
    Deliver({});
  } else if (BorrowsValues()) {
    stream_->Await(header_.value_bytes, Guarded([](LaneConnection* self) { self->OnBorrowed(); }));
  } else {
    ReadValues(floats_);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LaneConnection::HasChecksum() const {
  // Every request has one where there may be damage, and an answer has what its request has.
  if (stream_->lossless() && header_.checksum_kind == wire::Checksum::kNone) return false;
  if (header_.checksum_kind == wire::Checksum::kXxh3) return true;
  return absl::DataLossError("it answered without a checksum");
}

RowCheck LaneConnection::CheckOf(std::span<const std::byte> values) {
  sum_.Reset();
  sum_.Add(std::as_bytes(std::span(directory_)));
  return {&sum_, header_.checksum, values};
}

absl::Status LaneConnection::CheckChecksum(std::span<const std::byte> values) {
  MUSTER_ASSIGN_OR_RETURN(const bool has_one, HasChecksum());
  if (has_one && !CheckOf(values).Finish()) return absl::DataLossError(kDamaged);
  return absl::OkStatus();
}

bool LaneConnection::BorrowsValues() const {
  return header_.encoding == wire::Encoding::kFloat32 && header_.value_bytes <= stream_->lends();
}

void LaneConnection::OnBorrowed() {
  const std::span<const std::byte> bytes = stream_->Borrow(header_.value_bytes);
  absl::Status status = CheckChecksum(bytes);
  if (bytes.size() != header_.value_bytes) status = absl::InternalError("its rows have not come");
  if (!status.ok()) return Close(Message(status));
  ReceivedRows rows;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0) {
    rows.values = reinterpret_cast<const float*>(bytes.data());
  } else {  // after a text of an odd length
    rows_ = MakeRowBlock(floats_);
    std::memcpy(rows_.get(), bytes.data(), bytes.size());
    rows = ReceivedRows(std::move(rows_));
  }
  Deliver(std::move(rows));
  stream_->GiveBack();
}

void LaneConnection::ReadValues(uint64_t floats) {
  rows_ = MakeRowBlock(floats);
  asio::mutable_buffer into(rows_.get(), header_.value_bytes);
  if (header_.encoding != wire::Encoding::kFloat32) {
    encoded_.resize(header_.value_bytes);
    into = asio::buffer(encoded_);
  }
  Read(into, &LaneConnection::OnValues);
}

void LaneConnection::OnValues() {
  const std::span<float> rows(rows_.get(), floats_);
  const std::span<const std::byte> floats = std::as_bytes(rows);
  const bool narrow = header_.encoding != wire::Encoding::kFloat32;
  if (narrow || !reply_.versions.empty()) {
    const absl::Status status =
        CheckChecksum(narrow ? std::span<const std::byte>(encoded_) : floats);
    if (!status.ok()) return Close(Message(status));
    if (narrow) wire::DecodeValues(encoded_, header_.encoding, rows);
    return Deliver(ReceivedRows(std::move(rows_)));
  }
  const absl::StatusOr<bool> checked = HasChecksum();
  if (!checked.ok()) return Close(Message(checked.status()));
  RowCheck check = CheckOf(floats);
  ReceivedRows received(std::move(rows_));
  if (*checked) received.check = &check;
  Deliver(std::move(received));
}

void LaneConnection::Deliver(ReceivedRows rows) {
  auto node = outstanding_.extract(RequestId(header_.request));
  ReadHeader();
  rows.versions = reply_.versions;
  if (listener_->OnReply(node.mapped(), reply_.parts, rows, reply_.text)) return;
  outstanding_.insert(std::move(node));
  Close(kDamaged);
}

void LaneConnection::WatchSilence() {
  timer_.expires_after(std::chrono::milliseconds(500));
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->closed_) return;
    self->CheckSilence();
    if (!self->closed_) self->WatchSilence();
  });
}

void LaneConnection::CheckSilence() {
  // Every byte counts as progress, so a large frame on a slow link may take long.
  const uint64_t moved = stream_ == nullptr ? 0 : stream_->bytes_moved();
  if (std::exchange(bytes_moved_, moved) != moved) last_progress_ = clock_->Now();
  const auto silent = clock_->Now() - last_progress_;
  if (!greeted_ && silent > options_->connect_timeout) return Close("it does not greet");
  if (!outstanding_.empty() && silent > options_->silence_max) {
    Close(fmt::format("no answer for {} ms", options_->silence_max.count()));
  }
}

void LaneConnection::Close(std::string_view why, std::optional<RequestId> refused) {
  if (closed_) return;
  closed_ = true;
  std::string reason = fmt::format("{}: {}", target_.name, why);
  error_code ignored;
  socket_.close(ignored);
  resolver_.cancel();
  if (stream_ != nullptr) stream_->Close();
  timer_.cancel();
  // `frames_` stay until the handlers are gone: the kernel no longer reads them, but Asio still
  // holds pointers to them.
  auto self = shared_from_this();
  const auto outstanding = std::exchange(outstanding_, {});
  const auto queue = std::exchange(queue_, {});
  closed_handler_(this);
  if (!greeted_) listener_->OnCannotConnect(target_.lane, why);
  for (const auto& [id, request] : outstanding) {
    if (id == refused) {
      listener_->OnRefused(request, why);
    } else {
      listener_->OnUnanswered(id, reason);
    }
  }
  for (const SendRequest& request : queue) listener_->OnUnanswered(request.id, reason);
}

}  // namespace muster::sdk::net_internal
