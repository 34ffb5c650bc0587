#pragma once

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/internal/bucket_progress.h"
#include "collectives/internal/dialer.h"
#include "collectives/internal/link.h"
#include "collectives/internal/listener_state.h"
#include "collectives/reducer.h"

namespace muster::collectives::internal {

/// The inside of a Reducer: its connections, and the sums that they carry. Of two members, the one
/// of the lower rank connects. Belongs to the listener's thread.
class ReducerState : public std::enable_shared_from_this<ReducerState>,
                     public ListenerState::AttemptHandler {
 public:
  ReducerState(ReducerOptions options, std::shared_ptr<ListenerState> listener,
               Reducer::OnFailed on_failed);

  void Start();
  /// Requires: the arguments are right.
  void Add(StepNumber step, uint32_t bucket, SumType type, std::span<const std::byte> in,
           std::span<std::byte> out, Reducer::Done done);
  void Abort();
  void OnConnection(const std::shared_ptr<PendingConnection>& connection) override;

 private:
  using Key = std::pair<StepNumber, uint32_t>;  // step and bucket
  /// A chunk that leaves when its connection stands.
  struct Chunk {
    FrameHeader header;
    std::span<const std::byte> bytes;
  };
  /// Another member, and the connection with it.
  struct Peer : Link::Handler {
    Peer(ReducerState* of, uint32_t its_rank, const GroupMember* who)
        : state(of), rank(its_rank), member(who) {}
    absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(
        const FrameHeader& header) override;
    absl::Status OnPayload(const FrameHeader& header) override;
    absl::Status OnLent(const FrameHeader& header, std::span<const std::byte> payload) override;
    void OnEnded(std::string_view why) override;

    ReducerState* const state;
    const uint32_t rank;
    const GroupMember* const member;
    std::shared_ptr<net::Connector> dialer;
    std::shared_ptr<Link> link;
    std::string address = "a connection that it made";
    bool standing = false;  // both have said hello
    bool over = false;      // it has failed, or left
    std::vector<Chunk> waiting;
    /// It has sent a chunk of a bucket that this member has not given yet.
    std::optional<Key> awaits;
  };
  struct Sum {
    BucketProgress work;
    Reducer::Done done;
  };

  void Dial(Peer* peer);
  void OnDialed(Peer* peer, absl::StatusOr<Dialed> dialed);
  void WatchConnecting();
  std::string RefusalOf(const Hello& hello) const;
  void Stand(Peer* peer);
  void Fail(Peer* peer, std::string_view why);
  void SendChunk(Peer* peer, const Chunk& chunk);
  /// Sends what can leave, and answers the sum if it is done.
  void Work(Key key);
  void OnSent(Key key);
  /// A chunk has come.
  void Moved();

  const ReducerOptions options_;
  const std::shared_ptr<ListenerState> listener_;
  const Reducer::OnFailed on_failed_;
  boost::asio::steady_timer connecting_;
  bool aborted_ = false;
  std::map<uint32_t, Peer> peers_;  // by rank
  std::map<Key, Sum> sums_;
};

}  // namespace muster::collectives::internal
