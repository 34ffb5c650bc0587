#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "collectives/backend.h"

namespace muster::collectives::internal {

/// The sums of one attempt, made by a backend on a thread of its own.
///
/// A backend wants the same buckets in the same order from all members, but members give them in
/// any order. So a step's buckets are added in the order of their numbers. Gradients are copied to
/// memory of the backend and back. So a backend that does not end an aborted sum never touches the
/// caller's memory; its thread and its memory remain.
///
/// Thread-safe, apart from Finish.
class BackendThread {
 public:
  /// `digest`: of the sum, if the status is OK. kAborted: Abort was called. kOutOfRange: see
  /// Communicator::SumOnDevice. Everything else: the backend cannot add in this process. After an
  /// error, all later sums fail as well.
  using Done = std::function<void(absl::Status status, uint32_t digest)>;
  struct Options {
    std::shared_ptr<Backend> backend;
    Backend::Place place;
    /// How many buckets a step has. They are numbered from 0.
    uint32_t buckets = 0;
    /// Adds int64 of all members without the backend, to tell them the id. Any thread may call
    /// `done`. After Abort, nobody need call it, and the memory is not touched.
    std::function<void(std::span<const std::byte> in, std::span<std::byte> out,
                       std::function<void(absl::Status)> done)>
        exchange;
    /// Runs answers to sums one after the other.
    std::function<void(std::function<void()>)> post;
  };

  /// Starts the thread.
  static std::shared_ptr<BackendThread> Start(Options options);
  virtual ~BackendThread() = default;

  /// As Reducer::Sum; `bucket` < options.buckets. `done` is posted.
  virtual void Add(StepNumber step, uint32_t bucket, SumType type, std::span<const std::byte> in,
                   std::span<std::byte> out, Done done) = 0;
  /// As Reducer::SumOnDevice.
  virtual void AddOnDevice(StepNumber step, uint32_t bucket, DeviceSum sum, Done done) = 0;
  /// Answers every pending sum with kAborted; the memory of sums is not touched any more.
  virtual void Abort() = 0;
  /// After Abort: `ended` is called when the thread has come to its end, perhaps by that thread.
  virtual void OnEnded(std::function<void()> ended) = 0;
  /// After Abort: waits for the thread. False: it does not end within `patience`, and is left to
  /// itself.
  virtual bool Finish(std::chrono::milliseconds patience) = 0;
};

}  // namespace muster::collectives::internal
