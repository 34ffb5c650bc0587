#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "collectives/listener.h"
#include "proto/messages/group_control.h"

namespace muster::collectives {

/// A learner's connection to one member, over which it gets stripes of a state and kept sums.
/// Thread-safety as of Reducer.
class StateClient {
 public:
  /// OK: all bytes have come. kNotFound: the member does not hold that. kFailedPrecondition: it
  /// does not hold it yet. kInvalidArgument: it holds another number of bytes. kUnavailable: it
  /// cannot be reached, or the connection broke; the text has the address. kAborted: the client was
  /// aborted.
  using Done = std::function<void(absl::Status)>;

  struct Options {
    GroupMember holder;
    /// How long it may take until both have said hello. Nothing else has a time limit.
    std::chrono::milliseconds connect_timeout{10'000};
    /// Must outlive the client.
    Listener* listener = nullptr;
  };

  /// Begins to connect.
  static std::unique_ptr<StateClient> Start(Options options);
  /// Aborts, and waits until no callback runs and no memory is in use.
  ~StateClient();
  StateClient(const StateClient&) = delete;
  StateClient& operator=(const StateClient&) = delete;

  /// Reads bytes [offset, offset + out.size()) of the stripe into `out`, which stays valid until
  /// `done`. Requests are answered in their order.
  void FetchStripe(StateLabel label, uint32_t stripe, uint64_t offset, std::span<std::byte> out,
                   Done done);
  /// Reads the whole sum of a bucket into `out`.
  void FetchSum(LineageNumber lineage, StepNumber step, uint32_t bucket, std::span<std::byte> out,
                Done done);
  /// Closes the connection and answers what is pending with kAborted. Idempotent.
  void Abort();

 private:
  struct State;
  explicit StateClient(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace muster::collectives
