#include "collectives/state_client.h"

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "collectives/internal/dialer.h"
#include "collectives/internal/link.h"
#include "collectives/internal/listener_state.h"

namespace muster::collectives {

using internal::Dialed;
using internal::Link;
using internal::ListenerState;

/// Belongs to the listener's thread.
struct StateClient::State : std::enable_shared_from_this<State>, Link::Handler {
  explicit State(Options given) : options(std::move(given)), listener(options.listener->state_) {}

  struct Fetch {
    FetchRequest request;
    std::span<std::byte> out;
    Done done;
  };

  void Start();
  void OnDialed(absl::StatusOr<Dialed> dialed);
  void Add(Fetch fetch);
  void Send(const Fetch& fetch);
  void AnswerFirst(const absl::Status& status);
  /// Closes the connection, and answers everything pending and later.
  void End(absl::Status why);
  absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(const FrameHeader& header) override;
  void OnPart() override { listener->CountMoved(); }
  absl::Status OnPayload(const FrameHeader& header) override;
  void OnEnded(std::string_view why) override;

  const Options options;
  const std::shared_ptr<ListenerState> listener;
  std::shared_ptr<net::Connector> dialer;
  std::shared_ptr<Link> link;
  std::string address;
  std::string message;
  std::deque<Fetch> pending;  // in the order of their answers
  absl::Status ended;         // not OK: why it has ended
};

void StateClient::State::Start() {
  if (!ended.ok()) return;
  const ListenerOptions& own = listener->options();
  dialer = internal::Dial(listener->io(),
                          {.addresses = options.holder.addresses,
                           .hello = {.job_id = own.job_id,
                                     .worker = own.worker,
                                     .incarnation = own.incarnation,
                                     .to_worker = options.holder.worker,
                                     .to_incarnation = options.holder.incarnation},
                           .timeout = options.connect_timeout,
                           .tls = own.tls_client,
                           .sharing = listener->sharing()},
                          [this](absl::StatusOr<Dialed> dialed) { OnDialed(std::move(dialed)); });
}

void StateClient::State::OnDialed(absl::StatusOr<Dialed> dialed) {
  if (!dialed.ok()) {
    return End(absl::UnavailableError(
        fmt::format("{}: {}", options.holder.worker, Message(dialed.status()))));
  }
  address = dialed->address;
  link = std::make_shared<Link>(std::move(dialed->stream), dialed->checked, this);
  link->SendMessage(FrameKind::kBegin, {});
  link->Start();
  for (const Fetch& fetch : pending) Send(fetch);
}

void StateClient::State::Add(Fetch fetch) {
  if (!ended.ok()) return fetch.done(ended);
  pending.push_back(std::move(fetch));
  if (link != nullptr) Send(pending.back());
}

void StateClient::State::Send(const Fetch& fetch) {
  link->SendMessage(FrameKind::kFetch, EncodeMessage(fetch.request));
}

absl::StatusOr<std::optional<std::span<std::byte>>> StateClient::State::OnHeader(
    const FrameHeader& header) {
  if (pending.empty()) return absl::InvalidArgumentError("it answered what was not asked");
  if (header.kind == FrameKind::kFetched) {
    if (header.payload_bytes != pending.front().out.size()) {
      return absl::InvalidArgumentError(fmt::format(
          "it sent {} bytes instead of {}", header.payload_bytes, pending.front().out.size()));
    }
    return std::optional(pending.front().out);
  }
  if (header.kind != FrameKind::kNotFetched) {
    return absl::InvalidArgumentError("it sent something else than an answer");
  }
  message.resize(header.payload_bytes);
  return std::optional(std::as_writable_bytes(std::span(message)));
}

absl::Status StateClient::State::OnPayload(const FrameHeader& header) {
  if (header.kind == FrameKind::kFetched) {
    listener->CountMoved();
    AnswerFirst(absl::OkStatus());
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const FetchError error, DecodeMessage<FetchError>(message));
  const std::string text =
      fmt::format("{} at {}: {}", options.holder.worker, address, Printable(error.text));
  AnswerFirst(error.not_found ? absl::NotFoundError(text)
              : error.later   ? absl::FailedPreconditionError(text)
                              : absl::InvalidArgumentError(text));
  return absl::OkStatus();
}

void StateClient::State::AnswerFirst(const absl::Status& status) {
  const Fetch first = std::move(pending.front());
  pending.pop_front();
  first.done(status);
}

void StateClient::State::OnEnded(std::string_view why) {
  End(absl::UnavailableError(fmt::format("{} at {}: {}", options.holder.worker, address, why)));
}

void StateClient::State::End(absl::Status why) {
  if (!ended.ok()) return;
  ended = std::move(why);
  if (dialer != nullptr) dialer->Cancel();
  if (link != nullptr) link->Close(false);
  for (const Fetch& fetch : std::exchange(pending, {})) fetch.done(ended);
}

std::unique_ptr<StateClient> StateClient::Start(Options options) {
  auto state = std::make_shared<State>(std::move(options));
  state->listener->Post([state] { state->Start(); });
  return std::unique_ptr<StateClient>(new StateClient(std::move(state)));
}

StateClient::~StateClient() {
  state_->listener->RunAndWait(
      [this] { state_->End(absl::AbortedError("the client was aborted")); });
}

void StateClient::Abort() {
  state_->listener->Post(
      [state = state_] { state->End(absl::AbortedError("the client was aborted")); });
}

void StateClient::FetchStripe(StateLabel label, uint32_t stripe, uint64_t offset,
                              std::span<std::byte> out, Done done) {
  State::Fetch fetch{
      {.kept_sum = false, .label = label, .number = stripe, .offset = offset, .bytes = out.size()},
      out,
      std::move(done)};
  state_->listener->Post(
      [state = state_, fetch = std::move(fetch)]() mutable { state->Add(std::move(fetch)); });
}

void StateClient::FetchSum(LineageNumber lineage, StepNumber step, uint32_t bucket,
                           std::span<std::byte> out, Done done) {
  State::Fetch fetch{{.kept_sum = true,
                      .label = {lineage, step},
                      .number = bucket,
                      .offset = 0,
                      .bytes = out.size()},
                     out,
                     std::move(done)};
  state_->listener->Post(
      [state = state_, fetch = std::move(fetch)]() mutable { state->Add(std::move(fetch)); });
}

}  // namespace muster::collectives
