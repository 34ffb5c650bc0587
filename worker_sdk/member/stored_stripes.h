#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "collectives/state_provider.h"
#include "proto/messages/group_state.h"
#include "store/object_store.h"

/// Stored pieces of a group's state: objects of the job's snapshot place, which all machines of the
/// job see. Blocking. Thread-safe. Errors name the object.
namespace muster::internal {

/// So many more bytes were moved; a bucket moves each twice. An error ends the call with it, apart
/// from the part that a bucket does at once.
using StripeProgress = std::function<absl::Status(size_t bytes)>;

/// Writes the object, so that it is there whole and durable, or not at all. An object of the same
/// name is replaced.
absl::Status StoreStripe(ObjectStore* store, const std::string& object,
                         std::span<const std::byte> bytes, const StripeProgress& moved);
/// Reads the object of `stripe` into `pieces`, which have its bytes in order. kDataLoss: it has
/// another size or checksum. After an error, the pieces may have anything.
absl::Status LoadStripe(ObjectStore* store, const StateStripe& stripe,
                        std::span<const std::span<std::byte>> pieces, const StripeProgress& moved);

/// Stores pieces of a group's state in a thread of its own, so that a slow store holds up nothing
/// else. Thread-safe.
class StripeStorer {
 public:
  /// How a try has ended, told by its thread. True: after an error, it is to try again.
  using Done = std::function<bool(const absl::Status& status)>;
  /// `store` outlives it. `pause`: after an error.
  explicit StripeStorer(ObjectStore* store,
                        std::chrono::milliseconds pause = std::chrono::seconds(1));
  /// Breaks off what it stores. Waits for `done`, and joins the thread.
  ~StripeStorer();
  StripeStorer(const StripeStorer&) = delete;
  StripeStorer& operator=(const StripeStorer&) = delete;

  /// The bytes are to become this object. A piece before it that is not stored yet is broken off,
  /// and its `done` is not called any more.
  void Store(std::string object, collectives::LentBytes bytes, Done done);
  /// No piece is to be stored now.
  void Drop();
  /// Bytes that were written, in all. It grows as long as the store gets on: a try that comes no
  /// further than the one before it does not count.
  uint64_t written() const;

 private:
  struct Piece {
    std::string object;
    collectives::LentBytes bytes;
    Done done;
  };
  void Run();
  /// It is the newest one that was given.
  bool IsWanted(uint64_t number) const MUSTER_REQUIRES(mutex_) {
    return !stopping_ && number == number_;
  }
  /// `best`: how far the tries of this piece have come.
  absl::Status Try(const Piece& piece, uint64_t number, uint64_t* best);
  void PauseAfterError(uint64_t number);

  ObjectStore* const store_;
  const std::chrono::milliseconds pause_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Piece> next_ MUSTER_GUARDED_BY(mutex_);
  uint64_t number_ MUSTER_GUARDED_BY(mutex_) = 0;  // of the newest piece
  uint64_t written_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::string said_;  // of its thread
  std::thread thread_;
};

}  // namespace muster::internal
