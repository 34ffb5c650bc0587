#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "proto/messages/control.h"
#include "proto/wire/frame.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/received_rows.h"
#include "worker_sdk/core/row_batch.h"
#include "worker_sdk/core/tensors.h"

namespace muster::sdk {

/// One pull, or one minibatch's push: what a PartSender brings to its partitions.
using DeliveryId = StrongId<struct DeliveryIdTag>;
/// One request to one lane; never used again, so an answer cannot be taken for another's.
using RequestId = StrongId<struct RequestIdTag>;

/// The thread of a server that serves a partition.
struct LaneAddress {
  ServerId server;
  ServerIncarnation incarnation;
  uint32_t lane = 0;
  friend auto operator<=>(const LaneAddress&, const LaneAddress&) = default;
};

/// The identity of the push, which each of its parts carries.
struct PushIdentity {
  ShardId shard;
  MinibatchIndex minibatch;
  LeaseToken token;
  RunNumber run;
  /// Job-wide position of the minibatch.
  uint64_t step = 0;
  /// A map at least as new as this is needed: the R of the lease's run.
  RestoreEpoch restore_epoch;
};

/// Effect: send these parts of `batch` to `lane`, and report the answer, or that there will be
/// none.
struct SendRequest {
  RequestId id;
  LaneAddress lane;
  /// Absent: a pull.
  std::optional<PushIdentity> push;
  std::shared_ptr<const RowBatch> batch;
  struct Item {
    uint32_t part = 0;  // index into batch->plan.parts
    OwnerEpoch epoch;
  };
  PooledVector<Item> items;
  /// For a pull: for every group of a dense table, the version of the rows that the pull holds.
  PooledVector<uint64_t> versions;
  /// Of all items.
  uint64_t keys = 0;
  uint64_t floats = 0;
};

using SendRequests = PooledVector<SendRequest>;

/// What a pull received besides the rows in its outputs. Empty if it has no dense tables.
struct PullRows {
  PooledVector<std::shared_ptr<const Tensor>> tensors;  // by table of the plan; null: a sparse one
};

/// A partition's answer about a part: it is in the rows, or (if asked without rows) it is not.
struct PartAnswer {
  PartitionId partition;
  bool in_rows = false;
  /// R of the map under which it was sent.
  RestoreEpoch sent_under;
};

/// Delivers parts to the partitions' owners. It routes by the newest map, repeats parts that were
/// refused or got no answer, and counts an OK once. Pure: no thread, no socket, no clock. Not
/// thread-safe.
///
/// Rules of docs/protocol.md kept here: a push leaves only under a map at least as new as its
/// lease's R; WRONG_OWNER is sent again after a new map, or after a back-off; RETRY after a
/// back-off; a part without an answer is sent again until the delivery is cancelled. An answer is
/// reported with the R under which it was requested, because a restore may have undone its state.
class PartSender {
 public:
  /// Bounds of the back-off between two sendings of one part.
  static constexpr std::chrono::milliseconds kBackoffMin{5};
  static constexpr std::chrono::milliseconds kBackoffMax{200};
  /// A part fails only after its frame was called malformed so many times in a row, because a
  /// damaged link or a server without memory can also cause this. With the back-offs, this takes 4
  /// s.
  static constexpr uint32_t kRefusalsMax = 20;
  /// The largest request, unless a single part is larger. Two such answers fit into a ring of 4
  /// MiB, and the server needs no large buffers.
  static constexpr uint64_t kRequestKeysMax = 1 << 17;
  static constexpr uint64_t kRequestFloatsMax = 15 << 15;
  /// A delivery is cut into about so many requests, so that one is served while others are sent.
  /// But a request has at least so many floats.
  static constexpr uint64_t kRequestsOfDelivery = 4;
  static constexpr uint64_t kRequestFloatsMin = 1 << 17;

  /// Takes a map that is newer than the one it has; others are ignored. Parts whose owner changed
  /// are sent again, in flight or not.
  void SetMap(std::shared_ptr<const PartitionMap> map, TimePoint now);

  DeliveryId AddPull(std::shared_ptr<const RowBatch> batch, TimePoint now);
  DeliveryId AddPush(const PushIdentity& push, std::shared_ptr<const RowBatch> batch,
                     TimePoint now);
  /// Forgets a delivery; later answers to it are ignored. Unknown ids are ignored.
  void Cancel(DeliveryId id);

  /// The result of an answer.
  struct Outcome {
    /// For a push: the partitions' answers about its parts.
    PooledVector<PartAnswer> parts;
    /// The delivery that it finished, every part OK.
    std::optional<DeliveryId> finished;
    /// A partition's floor is above this token, so the worker must drop the shard.
    std::optional<LeaseToken> stale;
    /// A part was in the rows before this delivery sent it: an earlier run of the minibatch has
    /// pushed it. Told once for a delivery.
    bool was_in_rows = false;
    /// The server says that the request can never work.
    bool bad_request = false;
  };
  /// The answer to a request: one code per item, in order; for a pull, `rows` has the received
  /// rows. An answer of the wrong length counts as none.
  Outcome OnReply(RequestId id, std::span<const wire::PartReply> parts, const ReceivedRows& rows,
                  TimePoint now);
  /// Call it for an answer to a pull, before OnReply of the same answer. Returns the copies that
  /// the caller makes in between, without a lock. No other answer may come in between. The copies
  /// go only into memory that is not read yet, and only for parts that still wait for this request.
  /// The rows are complete when OnReply has counted all parts. Without this call, OnReply copies.
  RowMoves PlaceRows(RequestId id, std::span<const wire::PartReply> parts,
                     const ReceivedRows& rows);
  /// There will be no answer: the connection was lost, or none could be made.
  void OnUnanswered(RequestId id, TimePoint now);
  /// The server calls the request's frame malformed. It is sent again like an unanswered one. True:
  /// it was refused so often that it can never work.
  bool OnRefused(RequestId id, TimePoint now);

  /// All due requests, grouped by delivery and lane.
  SendRequests Flush(TimePoint now);
  /// When Flush has something to do again; none if only answers are awaited.
  std::optional<TimePoint> NextDue() const;

  /// Takes the rows of a finished pull and forgets it.
  PullRows TakePull(DeliveryId id);
  bool Finished(DeliveryId id) const;

  /// True if a part waits for a newer map.
  bool wants_map() const { return wants_map_; }
  /// The master has answered, with or without a newer map.
  void MapAnswered() { wants_map_ = false; }

  /// How many minibatches have parts that are not OK yet, without questions.
  size_t outstanding_pushes() const { return outstanding_pushes_; }
  /// The id of the next delivery; earlier ones have smaller ids.
  DeliveryId next_delivery() const { return next_delivery_; }
  /// True if one of those minibatches was added before this delivery. The cost grows with the
  /// number of pending deliveries.
  bool PushesBefore(DeliveryId id) const;
  /// The values of all their parts.
  uint64_t outstanding_push_floats() const { return outstanding_push_floats_; }

  /// What servers answered so far, in order, for at most `limit` servers: begins after `after`, and
  /// continues from the first.
  std::vector<PeerTimes> Peers(std::optional<ServerId> after, size_t limit) const;

 private:
  enum class State : uint8_t { kWaiting, kInFlight, kOk };
  struct PartState {
    State state = State::kWaiting;
    uint8_t attempts = 0;
    uint8_t refusals = 0;     // in a row
    bool unanswered = false;  // a sending of this delivery may have applied it
    RequestId request;        // in flight: of the newest sending
    LaneAddress lane;         // of the newest sending
    OwnerEpoch epoch;         // of the newest sending
    RestoreEpoch sent_under;  // of the newest sending: R of the map
    TimePoint not_before{};   // waiting
  };
  struct Delivery {
    std::optional<PushIdentity> push;
    std::shared_ptr<const RowBatch> batch;
    PooledVector<PartState> parts;
    size_t remaining = 0;
    bool was_in_rows = false;
    PullRows rows;
    PooledVector<PulledTensor> tensors;  // of the pull's dense tables, the last ones of its plan
    TimePoint next_due{};                // no part is due before; TimePoint::max(): none waits
  };
  struct InFlight {
    DeliveryId delivery;
    PooledVector<uint32_t> parts;
    LaneAddress lane;
    bool push = false;
    bool question = false;            // of parts without rows
    PooledVector<uint64_t> versions;  // as in SendRequest
    /// By part of the answer, after PlaceRows: true if all its rows are in place, or will be after
    /// its moves.
    PooledVector<bool> placed;
    TimePoint turn_since{};  // when it was sent, or when the lane answered the request before it
  };
  /// The newest incarnation of each server that answered.
  struct Peer {
    ServerIncarnation incarnation;
    uint64_t pulls = 0;
    std::chrono::nanoseconds pull_time{0};
    uint64_t pushes = 0;
    std::chrono::nanoseconds push_time{0};
  };

  DeliveryId Add(std::optional<PushIdentity> push, std::shared_ptr<const RowBatch> batch,
                 TimePoint now);
  /// True if this request is the part's newest one.
  static bool IsAwaited(const PartState& part, RequestId id) {
    return part.state == State::kInFlight && part.request == id;
  }
  /// R of the state that an answer to this request is about, from the map under which it was sent.
  /// Absent: it answers an older request, and means nothing.
  std::optional<RestoreEpoch> SpeaksOf(const PartState& part, RequestId id) const;
  /// Pushes need a map at least as new as their lease's R. Under an older map, they would be
  /// useless.
  bool MayLeave(const Delivery& delivery) const;
  static bool IsOutstandingPush(const Delivery& delivery);
  void EndOutstandingPush(const Delivery& delivery);
  /// The position of PlaceRows in the rows and versions of an answer.
  struct RowCursor {
    const float* row;
    size_t version;
  };
  /// True if all rows of the part are in place after the moves.
  bool PlacePart(Delivery* delivery, uint32_t index, bool ok, bool awaited, const InFlight& request,
                 const ReceivedRows& rows, RowCursor* at, RowMoves* moves);
  /// The versions by which a request asks for one more part.
  static void AskByVersion(Delivery* delivery, const PlanPart& part, OwnerEpoch epoch,
                           PooledVector<uint64_t>* versions);
  /// `number`: of a dense table in the plan's tables.
  static PulledTensor& TensorOf(Delivery* delivery, size_t number);
  /// The delivery's tensor of the table, which may be at this number; null: it has none.
  static PulledTensor* TensorLike(Delivery* delivery, size_t number, TableId table);
  /// The pull's dense tensors are complete. They are the newest ones from now on.
  void TakeTensors(DeliveryId id, Delivery* delivery);
  void BeginRows(const RowBatch& batch, Delivery* delivery);
  /// True if an answer has as many rows as its request asks for.
  static bool IsOfLength(const InFlight& request, std::span<const wire::PartReply> parts,
                         const ReceivedRows& rows);
  void SendAgain(Delivery* delivery, PartState* part, TimePoint now);
  void Settle(Delivery* delivery, uint32_t part, const PartAnswer& answer, Outcome* outcome);
  void FlushDelivery(DeliveryId id, Delivery* delivery, TimePoint now, SendRequests* out);
  SendRequest* BeginRequest(DeliveryId id, const Delivery& delivery, uint32_t first_part,
                            const LaneAddress& lane, TimePoint now, SendRequests* out);
  std::optional<LaneAddress> LaneOf(PartitionId partition) const;
  void CountAnswer(const InFlight& request, std::span<const wire::PartReply> parts, TimePoint now);

  std::shared_ptr<const PartitionMap> map_;
  absl::flat_hash_map<ServerId, uint32_t> lanes_;  // lanes of each server of the map
  absl::flat_hash_map<DeliveryId, Delivery> deliveries_;
  absl::flat_hash_map<RequestId, InFlight> in_flight_;
  /// The newest received tensor. The next pull sends its versions.
  struct Newest {
    DeliveryId pull;
    std::shared_ptr<const Tensor> tensor;
  };
  absl::flat_hash_map<TableId, Newest> newest_;
  std::map<ServerId, Peer> peers_;
  DeliveryId next_delivery_{1};
  RequestId next_request_{1};
  size_t outstanding_pushes_ = 0;
  uint64_t outstanding_push_floats_ = 0;
  bool wants_map_ = true;
};

}  // namespace muster::sdk
