#include "collectives/internal/reducer_state.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words/limits.h"

namespace muster::collectives::internal {
namespace {

using boost::system::error_code;

absl::Status Aborted(AttemptNumber attempt) {
  return absl::AbortedError(fmt::format("attempt {} was given up", attempt.value()));
}

}  // namespace

ReducerState::ReducerState(ReducerOptions options, std::shared_ptr<ListenerState> listener,
                           Reducer::OnFailed on_failed)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      on_failed_(std::move(on_failed)),
      connecting_(*listener_->io()) {
  const auto members = static_cast<uint32_t>(options_.members.size());
  MUSTER_CHECK(options_.rank < members && members <= most::kMembers);
  for (const uint32_t rank : PeersOf(members, options_.rank)) {
    peers_.try_emplace(rank, this, rank, &options_.members[rank]);
  }
}

void ReducerState::Start() {
  if (aborted_) return;
  WatchConnecting();
  for (auto& [rank, peer] : peers_) {
    if (rank > options_.rank) Dial(&peer);
  }
  listener_->Register(options_.attempt, this);
}

void ReducerState::Dial(Peer* peer) {
  const GroupMember& own = options_.members[options_.rank];
  peer->dialer = internal::Dial(
      listener_->io(),
      {.addresses = peer->member->addresses,
       .hello = {.job_id = listener_->options().job_id,
                 .worker = own.worker,
                 .incarnation = own.incarnation,
                 .to_worker = peer->member->worker,
                 .to_incarnation = peer->member->incarnation,
                 .lineage = options_.lineage,
                 .attempt = options_.attempt,
                 .members = static_cast<uint32_t>(options_.members.size()),
                 .rank = options_.rank,
                 .to_rank = peer->rank},
       .timeout = options_.connect_timeout,
       .tls = listener_->options().tls_client,
       .sharing = listener_->sharing()},
      [this, peer](absl::StatusOr<Dialed> dialed) { OnDialed(peer, std::move(dialed)); });
}

void ReducerState::OnDialed(Peer* peer, absl::StatusOr<Dialed> dialed) {
  if (!dialed.ok()) return Fail(peer, Message(dialed.status()));
  peer->address = dialed->address;
  peer->link = std::make_shared<Link>(std::move(dialed->stream), dialed->checked, peer);
  peer->link->SendMessage(FrameKind::kBegin, {});
  peer->link->Start();
  Stand(peer);
}

/// Limits the time of members that connect to this one. A dialer has a limit of its own.
void ReducerState::WatchConnecting() {
  connecting_.expires_after(options_.connect_timeout);
  connecting_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->aborted_) return;
    for (auto& [rank, peer] : self->peers_) {
      if (rank > self->options_.rank || peer.standing) continue;
      self->Fail(&peer, fmt::format("it has not connected within {} ms",
                                    self->options_.connect_timeout.count()));
    }
  });
}

std::string ReducerState::RefusalOf(const Hello& hello) const {
  const std::string& own = options_.members[options_.rank].worker;
  if (hello.lineage != options_.lineage) {
    return fmt::format("{} works on lineage {}, not {}", own, options_.lineage.value(),
                       hello.lineage.value());
  }
  if (hello.members != options_.members.size() || hello.to_rank != options_.rank) {
    return fmt::format("{} is rank {} of {} members, not rank {} of {}", own, options_.rank,
                       options_.members.size(), hello.to_rank, hello.members);
  }
  const auto peer = peers_.find(hello.rank);
  if (peer == peers_.end() || hello.rank >= options_.rank) {
    return fmt::format("{} (rank {}) expects no connection of rank {}", own, options_.rank,
                       hello.rank);
  }
  const GroupMember& member = *peer->second.member;
  if (hello.worker != member.worker || hello.incarnation != member.incarnation) {
    return fmt::format("rank {} is {} of incarnation {}, not {} of incarnation {}", hello.rank,
                       member.worker, member.incarnation, hello.worker, hello.incarnation);
  }
  if (peer->second.standing || peer->second.over) {
    return fmt::format("rank {} was connected before in attempt {}", hello.rank,
                       options_.attempt.value());
  }
  return {};
}

void ReducerState::OnConnection(const std::shared_ptr<PendingConnection>& connection) {
  const Hello& hello = connection->hello();
  const std::string refused = RefusalOf(hello);
  if (!refused.empty()) return connection->Refuse(refused, false);
  Peer& peer = peers_.at(hello.rank);
  // The member has given up its earlier connection, which has not begun.
  if (peer.link != nullptr) peer.link->Close(false);
  peer.link = connection->Accept(&peer);
  peer.link->Start();
}

void ReducerState::Stand(Peer* peer) {
  peer->standing = true;
  for (const Chunk& chunk : std::exchange(peer->waiting, {})) SendChunk(peer, chunk);
}

void ReducerState::Fail(Peer* peer, std::string_view why) {
  if (aborted_ || std::exchange(peer->over, true)) return;
  if (peer->link != nullptr) peer->link->Close(false);
  on_failed_({.worker = peer->member->worker,
              .incarnation = peer->member->incarnation,
              .text = ValidUtf8(why, most::kNameBytes)});
}

absl::StatusOr<std::optional<std::span<std::byte>>> ReducerState::Peer::OnHeader(
    const FrameHeader& header) {
  if (!standing) state->Stand(this);
  if (header.kind == FrameKind::kBegin) return std::optional(std::span<std::byte>());
  if (header.kind == FrameKind::kLeave) {
    // The master tells this member why.
    over = true;
    link->Close(false);
    return std::optional(std::span<std::byte>());
  }
  if (header.kind != FrameKind::kChunk) {
    return absl::InvalidArgumentError("members send each other only chunks");
  }
  // Rule 12.5.
  if (header.lineage != state->options_.lineage || header.attempt != state->options_.attempt) {
    return absl::InvalidArgumentError(
        fmt::format("it sent a chunk of lineage {}, attempt {} in a connection of {}, {}",
                    header.lineage.value(), header.attempt.value(), state->options_.lineage.value(),
                    state->options_.attempt.value()));
  }
  const Key key(header.step, header.bucket);
  const auto sum = state->sums_.find(key);
  if (sum == state->sums_.end()) {
    awaits = key;
    return std::optional<std::span<std::byte>>();
  }
  BucketProgress& work = sum->second.work;
  MUSTER_RETURN_IF_ERROR(work.Check(rank, header));
  if (link->Lends(header)) return std::optional(std::span<std::byte>());
  return std::optional(work.PlaceOf(rank));
}

absl::Status ReducerState::Peer::OnPayload(const FrameHeader& header) {
  if (header.kind != FrameKind::kChunk) return absl::OkStatus();
  const Key key(header.step, header.bucket);
  state->sums_.at(key).work.Arrived(rank);
  state->Moved();
  state->Work(key);
  return absl::OkStatus();
}

absl::Status ReducerState::Peer::OnLent(const FrameHeader& header,
                                        std::span<const std::byte> payload) {
  const Key key(header.step, header.bucket);
  state->sums_.at(key).work.Arrived(rank, payload);
  state->Moved();
  state->Work(key);
  return absl::OkStatus();
}

void ReducerState::Moved() {
  listener_->CountMoved();
  MUSTER_FAILPOINT("group.in-sum");
}

void ReducerState::Peer::OnEnded(std::string_view why) {
  // A connection that has not begun may have been given up for another one.
  if (standing) state->Fail(this, fmt::format("{}: {}", address, why));
}

void ReducerState::Add(StepNumber step, uint32_t bucket, SumType type,
                       std::span<const std::byte> in, std::span<std::byte> out,
                       Reducer::Done done) {
  if (aborted_) return done(Aborted(options_.attempt), 0);
  const Key key(step, bucket);
  if (sums_.contains(key)) {
    return done(absl::InvalidArgumentError(
                    fmt::format("bucket {} of step {} is being summed", bucket, step.value())),
                0);
  }
  const size_t each = ElementBytes(type);
  ChunkPlan plan = PlanOf({.members = static_cast<uint32_t>(options_.members.size()),
                           .rank = options_.rank,
                           .elements = in.size() / each},
                          each);
  sums_.emplace(key, Sum{BucketProgress(std::move(plan), type, in, out), std::move(done)});
  Work(key);
  for (auto& [unused, peer] : peers_) {
    if (peer.awaits != key) continue;
    peer.awaits.reset();
    peer.link->Resume();
  }
}

void ReducerState::Work(Key key) {
  const auto found = sums_.find(key);
  BucketProgress& work = found->second.work;
  while (const auto out = work.NextSend()) {
    SendChunk(&peers_.at(out->peer), {{.kind = FrameKind::kChunk,
                                       .type = work.type(),
                                       .lineage = options_.lineage,
                                       .attempt = options_.attempt,
                                       .step = key.first,
                                       .bucket = key.second,
                                       .chunk = out->chunk,
                                       .elements = work.elements()},
                                      out->bytes});
  }
  if (!work.done()) return;
  const uint32_t crc = work.crc();
  const Reducer::Done done = std::move(found->second.done);
  sums_.erase(found);
  done(absl::OkStatus(), crc);
}

void ReducerState::SendChunk(Peer* peer, const Chunk& chunk) {
  if (peer->over) return;
  if (!peer->standing) {
    peer->waiting.push_back(chunk);
    return;
  }
  const Key key(chunk.header.step, chunk.header.bucket);
  peer->link->Send(chunk.header, chunk.bytes, [this, key] { OnSent(key); });
}

void ReducerState::OnSent(Key key) {
  sums_.at(key).work.Sent();
  Work(key);
}

void ReducerState::Abort() {
  if (std::exchange(aborted_, true)) return;
  connecting_.cancel();
  listener_->Unregister(options_.attempt);
  for (auto& [unused, peer] : peers_) {
    if (peer.dialer != nullptr) peer.dialer->Cancel();
    if (peer.link == nullptr) continue;
    peer.link->Close(peer.standing);
    peer.link = nullptr;  // on this thread, to which its shared memory belongs
  }
  for (const auto& [unused, sum] : std::exchange(sums_, {})) {
    sum.done(Aborted(options_.attempt), 0);
  }
}

}  // namespace muster::collectives::internal
