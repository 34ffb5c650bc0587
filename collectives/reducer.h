#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "collectives/backend.h"
#include "collectives/listener.h"
#include "proto/messages/group_control.h"

namespace muster::collectives {

/// One attempt of a group: its members, in the order of their ranks.
struct ReducerOptions {
  LineageNumber lineage;
  AttemptNumber attempt;  // larger than that of every earlier Reducer of the listener
  uint32_t rank = 0;      // of this process
  std::vector<GroupMember> members;
  /// How long a connection with another member may take, until both have said hello. Nothing else
  /// has a time limit: a slow member is no error.
  std::chrono::milliseconds connect_timeout{10'000};
  /// Must outlive the reducer.
  Listener* listener = nullptr;
  /// What adds the buckets. If it is absent, the ring and tree of this folder do. All members have
  /// the same. The connections of the ring stay, because they notice at once when a member dies.
  std::shared_ptr<Backend> backend;
  /// With a backend: buckets are on its device, so it adds those of a single member, too.
  bool on_device = false;
  /// With a backend: how many buckets a step has. They are numbered from 0.
  uint32_t buckets = 0;
  /// With a backend: how long its thread may take to end an aborted sum. After that, it is left to
  /// itself, with memory of the backend.
  std::chrono::milliseconds backend_patience{5'000};
};

/// Adds buckets of gradients with the other members of one attempt, so that every member gets the
/// same bits. All work is done by the listener's thread.
///
/// Thread-safety: Sum and Abort may be called by any thread. Callbacks come on the listener's
/// thread, without any lock; they must not block, and must not destroy the reducer (see End) or the
/// listener.
class Reducer {
 public:
  /// `digest`: of the sum, if the status is OK; the same at all members. CRC-32C
  /// (base/checksum/crc32c.h), if the backend has no other.
  using Done = std::function<void(absl::Status status, uint32_t digest)>;
  /// A member cannot be reached, or has broken its connection. At most once per member. Not called
  /// for a member that leaves the attempt in order. Sums that need either stay pending until Abort.
  using OnFailed = std::function<void(SuspectedMember)>;

  /// Begins to connect with the members that it needs. Requires: `options` is consistent: `rank` is
  /// one of `members`, of which there are at most most::kMembers.
  static std::unique_ptr<Reducer> Start(ReducerOptions options, OnFailed on_failed);
  /// Aborts, and waits until no callback runs and no memory of a Sum is in use. After End, there is
  /// nothing to wait for.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Writes the sum of all members' `in` to `out`. Both stay valid, and `in` unchanged, until
  /// `done` is called, which happens once. They have the same size and do not overlap. Type:
  /// kFloat32, kBfloat16 (added as float32, rounded to nearest even each time), kInt64, or
  /// kFixedPoint (as kInt64; it wraps around). All members give the same buckets of a step, each
  /// with the same type and size, in any order, and each without waiting for the sum of another.
  /// They may give buckets of the next step when they have all sums of this one.
  ///
  /// kInvalidArgument: the arguments are wrong; kAborted: the reducer was aborted. Other errors are
  /// those of the backend: it cannot add in this process any more.
  void Sum(StepNumber step, uint32_t bucket, GroupDtype dtype, std::span<const std::byte> in,
           std::span<std::byte> out, Done done);
  /// The same for a bucket on the device of the backend. Its memory may be in use for longer, so
  /// the reducer owns it, too. Requires: a backend with a device, and `on_device`. kOutOfRange: see
  /// Communicator::SumOnDevice; the reducer adds nothing any more.
  void SumOnDevice(StepNumber step, uint32_t bucket, DeviceSum sum, Done done);
  /// Closes all connections at once, and answers every pending Sum with kAborted, soon, on the
  /// listener's thread. Later calls of Sum are answered in the same way. Idempotent.
  void Abort();
  /// Aborts. `ended` is called on the listener's thread when no callback comes any more, no memory
  /// of a Sum is in use, and the backend has ended its sum or used up its time. Then the reducer
  /// may be destroyed, also by `ended` itself. Call it once.
  void End(std::function<void()> ended);

 private:
  struct State;
  explicit Reducer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace muster::collectives
