#include "collectives/internal/state_session.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace muster::collectives::internal {

StateSession::StateSession(StateProvider* provider, Ended ended)
    : provider_(provider), ended_(std::move(ended)) {}

void StateSession::Start(PendingConnection* learner) {
  link_ = learner->Accept(this);
  link_->Start();
}

void StateSession::Close() {
  link_->Close(false);
}

absl::StatusOr<std::optional<std::span<std::byte>>> StateSession::OnHeader(
    const FrameHeader& header) {
  if (answering_) return std::optional<std::span<std::byte>>();
  if (header.kind != FrameKind::kFetch && header.kind != FrameKind::kBegin) {
    return absl::InvalidArgumentError("a learner only fetches");
  }
  message_.resize(header.payload_bytes);
  return std::optional(std::as_writable_bytes(std::span(message_)));
}

absl::Status StateSession::OnPayload(const FrameHeader& header) {
  if (header.kind == FrameKind::kBegin) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const FetchRequest request, DecodeMessage<FetchRequest>(message_));
  answering_ = true;
  Answer(request);
  return absl::OkStatus();
}

void StateSession::Answer(const FetchRequest& request) {
  absl::StatusOr<LentBytes> lent =
      request.kept_sum
          ? provider_->KeptSum(request.label.lineage, request.label.step, request.number)
          : provider_->Stripe(request.label, request.number);
  if (!lent.ok()) return SendError(lent.status());
  const uint64_t all = lent->bytes.size();
  if (request.offset > all || request.bytes > all - request.offset ||
      (request.kept_sum && request.bytes != all)) {
    return SendError(absl::InvalidArgumentError(fmt::format(
        "{} bytes from byte {} on were asked for, of {}", request.bytes, request.offset, all)));
  }
  lent_ = std::move(lent->owner);
  link_->Send({.kind = FrameKind::kFetched}, lent->bytes.subspan(request.offset, request.bytes),
              [this] { OnSent(); });
}

void StateSession::SendError(const absl::Status& why) {
  link_->SendMessage(FrameKind::kNotFetched,
                     EncodeMessage(FetchError{.not_found = absl::IsNotFound(why),
                                              .text = ValidUtf8(Message(why), 1'000),
                                              .later = absl::IsFailedPrecondition(why)}));
  answering_ = false;
}

void StateSession::OnSent() {
  lent_ = nullptr;
  answering_ = false;
  link_->Resume();
}

void StateSession::OnEnded(std::string_view /*why*/) {
  ended_(shared_from_this());
}

}  // namespace muster::collectives::internal
