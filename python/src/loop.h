#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "muster/muster.h"
#include "python/src/batch.h"
#include "python/src/session.h"

namespace muster::python {

/// What has the minibatches of a loop: a shard, or a step of a group. When it is destroyed, a shard
/// that has neither ended nor failed goes back.
class LoopSource {
 public:
  virtual ~LoopSource() = default;
  virtual MinibatchRange Minibatches(Prepare prepare) = 0;
  virtual void Fail(const std::string& reason) = 0;
  /// For logs.
  virtual std::string id() const = 0;
  virtual std::string header() const = 0;
};

/// A loop over minibatches. Requires the GIL. Belongs to the thread that made it; another one may
/// only close it.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  /// `parse` may be None.
  static std::shared_ptr<Loop> Make(std::shared_ptr<PySession> session,
                                    std::unique_ptr<LoopSource> source, nb::object parse);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The next minibatch, or None if there is none any more. Commits the one before, if that was not
  /// done. Raises what `parse` has raised; then the shard has failed.
  nb::object Next();
  void Fail(const std::string& reason);
  /// Makes a Parquet file of what the minibatches have given out. Called without the GIL, in Next.
  /// An exception becomes an error; one that is no Exception is raised by Next, too.
  Result<std::string> JoinOutputs(std::span<const std::string_view> pieces);
  /// Leaves the loop, and destroys its source: a shard that has neither ended nor failed goes back.
  /// Idempotent. Does nothing while the loop's thread is in a call of the source: inside of `parse`
  /// or of a signal's handler, or on another thread.
  void Close();
  /// Such a call is in progress.
  bool in_use() const { return uses_ > 0; }

  /// Counts a call in which the loop's thread may wait; the source is there as long.
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
  const LoopSource& source() const { return *source_; }
  /// Raises if this is not the loop's thread.
  void RequireThread() const;

 private:
  Loop(std::shared_ptr<PySession> session, std::unique_ptr<LoopSource> source, nb::object parse);
  /// Muster's `prepare`: without the GIL.
  void Parse(Minibatch& minibatch);
  std::shared_ptr<Batch> Add(Minibatch& minibatch);
  void RaiseCaught();

  const std::shared_ptr<PySession> session_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::unique_ptr<LoopSource> source_;
  std::optional<MinibatchRange> range_;
  MinibatchRange::Iterator at_{nullptr};
  bool begun_ = false;
  int uses_ = 0;  // calls in progress
  nb::object parse_;
  std::exception_ptr caught_;  // in a call by the library, for Next to raise
  // The current one first, then those that `parse` has seen. The second is the same in Python.
  std::deque<std::pair<std::shared_ptr<Batch>, nb::object>> batches_;
};

}  // namespace muster::python
