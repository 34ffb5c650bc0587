#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/version.h"
#include "worker_sdk/net/internal/lane_connection.h"

namespace muster::sdk::net_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// How many frames one write may carry.
constexpr size_t kFramesPerWrite = 8;
constexpr char kDamaged[] = "the checksum of an answer is wrong";
constexpr char kUnchecked[] = "it answered without a checksum";

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
      timer_(std::move(executor)) {}

/// A handler that keeps the connection alive. It does nothing after the connection is closed, and
/// closes it on an error. If `handler` holds nothing, it is so small that streams store it without
/// an allocation.
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
  std::vector<std::string> addresses = target_.addresses;
  if (sharing_->tcp_only.contains(target_.lane)) std::erase_if(addresses, net::IsUnixAddress);
  const std::shared_ptr<LaneConnection> self = shared_from_this();
  connector_ = std::make_shared<net::Connector>(
      timer_.get_executor(),
      net::Connector::Options{.addresses = std::move(addresses),
                              .socket = {.unix_buffer_bytes = options_->unix_buffer_bytes},
                              .tls = options_->tls,
                              .greeting = {self, static_cast<net::Connector::Greeting*>(this)},
                              .ring_bytes = sharing_->wanted ? options_->ring_bytes_max : 0},
      [self](absl::StatusOr<net::Connector::Made> made) {
        if (!self->closed_) self->OnMade(std::move(made));
      });
  const auto connector = connector_;  // a copy, because it may fail at once
  connector->Start();
}

std::string LaneConnection::Hello(bool same_machine, uint32_t ring_bytes) {
  same_machine_ = same_machine;
  return HelloFrame({.job = options_->job.name,
                     .job_id = options_->job.id,
                     .peer = options_->worker,
                     .software = fmt::format("muster {}", kVersion),
                     .ring_bytes_max = ring_bytes});
}

absl::StatusOr<size_t> LaneConnection::OnHeader(
    std::span<const std::byte, wire::kHeaderBytes> header) {
  MUSTER_RETURN_IF_ERROR(TakeHeader(header));
  return header_.directory_bytes;
}

absl::StatusOr<uint32_t> LaneConnection::OnAnswer(std::string_view directory) {
  directory_ = directory;
  absl::StatusOr<uint32_t> ring_bytes = OnHelloReply();
  // Another server listens at this path: on this machine, a server of the same name exists.
  if (!ring_bytes.ok() && same_machine_) sharing_->tcp_only.insert(target_.lane);
  return ring_bytes;
}

absl::StatusOr<uint32_t> LaneConnection::OnHelloReply() {
  if (header_.kind == wire::Kind::kError) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, wire::DecodeError(directory_));
    return absl::UnavailableError(text);
  }
  if (header_.kind != wire::Kind::kHelloReply) {
    return absl::InvalidArgumentError("it did not greet");
  }
  MUSTER_ASSIGN_OR_RETURN(const wire::HelloReply reply, wire::DecodeHelloReply(directory_));
  if (header_.checksum_kind != wire::Checksum::kXxh3) return absl::DataLossError(kUnchecked);
  if (!CheckOf({}).Finish()) return absl::DataLossError(kDamaged);
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
  return reply.ring_bytes;
}

void LaneConnection::OnMade(absl::StatusOr<net::Connector::Made> made) {
  if (!made.ok()) {
    return Close(connector_->connected() ? connector_->why() : std::string(Message(made.status())));
  }
  last_progress_ = clock_->Now();
  bytes_moved_ = 0;
  connector_ = nullptr;
  stream_ = std::move(made->stream);
  listener_->OnConnected(target_.lane);
  WriteQueued();
  ReadHeader();
}

void LaneConnection::Send(SendRequest request) {
  if (closed_) return;
  // Silence counts from the first request that waits for an answer.
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
  if (stream_ == nullptr || writing_) return;
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
  return stream_ != nullptr && !closed_ && stream_->BeginPolling();
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
  Read(asio::buffer(header_bytes_), &LaneConnection::OnFrame);
}

absl::Status LaneConnection::TakeHeader(std::span<const std::byte, wire::kHeaderBytes> bytes) {
  MUSTER_ASSIGN_OR_RETURN(header_, wire::DecodeHeader(bytes));
  if (header_.keys != 0) return absl::InvalidArgumentError("it answered with keys");
  return absl::OkStatus();
}

void LaneConnection::OnFrame() {
  const absl::Status status = TakeHeader(header_bytes_);
  if (!status.ok()) return Close(Message(status));
  directory_.resize(header_.directory_bytes);
  Read(asio::buffer(directory_), &LaneConnection::OnDirectory);
}

void LaneConnection::OnDirectory() {
  if (header_.kind == wire::Kind::kError) {
    absl::StatusOr<std::string> text = wire::DecodeError(directory_);
    const RequestId request(header_.request);
    return Close(text.ok() ? *text : std::string(Message(text.status())),
                 outstanding_.contains(request) ? std::optional(request) : std::nullopt);
  }
  absl::Status status = header_.value_bytes == 0 ? CheckChecksum({}) : absl::OkStatus();
  if (status.ok()) status = OnReplyDirectory();
  if (!status.ok()) Close(Message(status));
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
  // If bytes may be damaged on the way, every request has a checksum, and its answer has one, too.
  if (stream_->lossless() && header_.checksum_kind == wire::Checksum::kNone) return false;
  if (header_.checksum_kind == wire::Checksum::kXxh3) return true;
  return absl::DataLossError(kUnchecked);
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
  } else {  // the values are not aligned, after a text of an odd length
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
  if (closed_) return;
  // Every byte counts as progress, so a large frame on a slow link may take long.
  const uint64_t moved = connector_ != nullptr ? connector_->bytes_moved() : stream_->bytes_moved();
  if (std::exchange(bytes_moved_, moved) != moved) last_progress_ = clock_->Now();
  const auto silent = clock_->Now() - last_progress_;
  if (connector_ != nullptr && silent > options_->connect_timeout)
    return Close("it does not greet");
  if (!outstanding_.empty() && silent > options_->silence_max) {
    Close(fmt::format("no answer for {} ms", options_->silence_max.count()));
  }
}

void LaneConnection::Close(std::string_view why, std::optional<RequestId> refused) {
  if (closed_) return;
  closed_ = true;
  std::string reason = fmt::format("{}: {}", target_.name, why);
  const std::shared_ptr<net::Connector> connector = std::exchange(connector_, nullptr);
  if (connector != nullptr) connector->Cancel();
  if (stream_ != nullptr) stream_->Close();
  timer_.cancel();
  // `frames_` must stay until the handlers are gone. The kernel does not read them any more, but
  // Asio still has pointers to them.
  auto self = shared_from_this();
  const auto outstanding = std::exchange(outstanding_, {});
  const auto queue = std::exchange(queue_, {});
  closed_handler_(this);
  if (stream_ == nullptr) listener_->OnCannotConnect(target_.lane, why);
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
