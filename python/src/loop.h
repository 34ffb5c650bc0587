#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "muster/muster.h"
#include "python/src/batch.h"
#include "python/src/session.h"

namespace muster::python {

/// A shard, and the loop over its minibatches. Requires the GIL. Belongs to the thread that made
/// it; another one may only close it.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  /// `parse` may be None.
  static std::shared_ptr<Loop> Make(std::shared_ptr<PySession> session, Shard shard,
                                    nb::object parse);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The next minibatch, or None if there is none any more. Commits the one before, if that was not
  /// done. Raises what `parse` has raised; then the shard has failed.
  nb::object Next();
  void Fail(const std::string& reason);
  /// Leaves the loop. If it has neither ended nor failed, the shard goes back. Idempotent. Does
  /// nothing while the loop's thread is in a call of the shard: inside of `parse` or of a signal's
  /// handler, or on another thread.
  void Close();

  /// Counts a call in which the loop's thread may wait; the shard is there as long.
  class InUse {
   public:
    explicit InUse(Loop* loop) : loop_(loop) { ++loop_->uses_; }
    ~InUse() { --loop_->uses_; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    Loop* const loop_;
  };

  PySession& session() { return *session_; }
  const Shard* shard() const { return shard_ ? &*shard_ : nullptr; }
  /// Raises if this is not the loop's thread.
  void RequireThread() const;

 private:
  Loop(std::shared_ptr<PySession> session, Shard shard, nb::object parse);
  /// Muster's `prepare`: without the GIL.
  void Parse(Minibatch& minibatch);
  std::shared_ptr<Batch> Add(Minibatch& minibatch);
  void RaiseParseError();

  const std::shared_ptr<PySession> session_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::optional<Shard> shard_;
  std::optional<MinibatchRange> range_;
  MinibatchRange::Iterator at_{nullptr};
  bool begun_ = false;
  int uses_ = 0;  // calls in progress
  nb::object parse_;
  std::exception_ptr parse_error_;
  // The current one first, then those that `parse` has seen. The second is the same in Python.
  std::deque<std::pair<std::shared_ptr<Batch>, nb::object>> batches_;
};

}  // namespace muster::python
