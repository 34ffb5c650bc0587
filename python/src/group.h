#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/muster.h"
#include "python/src/arguments.h"
#include "python/src/loop.h"
#include "python/src/session.h"

namespace muster::python {

class PyGroup;
class PyStep;

/// A muster::SumBucket with what messages need.
struct PyBucket {
  const PyGroup* group = nullptr;
  std::string name;
  SumBucket bucket;
};

/// A muster::Group for Python, with a muster::DiLoCo if it trains with local steps. All members
/// require the GIL, which every call that may wait releases meanwhile. From the first NextStep on,
/// it belongs to the thread that called it.
class PyGroup : public std::enable_shared_from_this<PyGroup> {
 public:
  /// Raises if the job has no group, or if this process has one.
  static std::shared_ptr<PyGroup> Make(std::shared_ptr<PySession> session,
                                       const CollectiveOptions& options);
  ~PyGroup();
  PyGroup(const PyGroup&) = delete;
  PyGroup& operator=(const PyGroup&) = delete;

  PyBucket AddBucket(const std::string& name, int64_t elements, const SumOptions& options);
  /// Keeps the array until the group ends.
  void AddState(const std::string& name, nb::handle values);
  /// From now on, it is a group of DiLoCo.
  void TrainLocally(const DiLoCoOptions& options);
  void AddWeights(const std::string& name, nb::handle values);
  void AddMean(const std::string& name, nb::handle values);

  /// Null if there is none any more. Ends the step before.
  std::shared_ptr<PyStep> NextStep();
  bool HasFinalState();
  /// Ends the step that is open, and leaves the group. Idempotent.
  void Close();

  PySession& session() { return *session_; }
  /// Null without local steps.
  DiLoCo* local() { return local_ ? &*local_ : nullptr; }
  void RequireThread() const;

 private:
  explicit PyGroup(std::shared_ptr<PySession> session) : session_(std::move(session)) {}
  /// The group; raises if it is closed, or on another thread.
  Group& Use();
  /// The same with local steps.
  DiLoCo& UseLocal();
  /// Of float32, for local steps.
  std::span<float> Keep(nb::handle values, const std::string& name);

  const std::shared_ptr<PySession> session_;
  std::vector<Writable> memory_;  // what is registered; the group must go first
  std::optional<Group> group_;
  std::optional<DiLoCo> local_;
  std::optional<std::thread::id> thread_;
  std::weak_ptr<PyStep> step_;
};

/// A muster::GroupStep for Python. Requires the GIL. Belongs to the thread of its group, except for
/// Add.
class PyStep : public std::enable_shared_from_this<PyStep> {
 public:
  PyStep(std::shared_ptr<PyGroup> group, GroupStep step);
  ~PyStep();
  PyStep(const PyStep&) = delete;
  PyStep& operator=(const PyStep&) = delete;

  uint64_t number() const { return number_; }
  uint32_t epoch() const { return epoch_; }
  bool evaluate() const { return evaluate_; }
  bool replay() const { return replay_; }
  bool state_copied() const { return state_copied_; }
  uint64_t Records() const;

  std::shared_ptr<Loop> Minibatches(nb::object parse);
  void Add(const PyBucket& bucket, nb::handle gradient);
  void Put(const PyBucket& bucket, nb::handle sum);
  bool Commit(nb::object apply);
  nb::object Sum(const PyBucket& bucket, nb::object out);
  void Fail(const std::string& reason);

  /// Something of the step is in progress, on whatever thread.
  bool busy() const;
  /// Ends the step; if it was not committed, it fails. Idempotent. Not while it is busy.
  void End();
  /// The step; raises if it is over, or on another thread.
  GroupStep& Use();
  /// Without these questions, and without the GIL: for the loop, which is over before the step.
  GroupStep& step() { return *step_; }

 private:
  void RequireBucket(const PyBucket& bucket) const;

  const std::shared_ptr<PyGroup> group_;
  std::optional<GroupStep> step_;
  const uint64_t number_;
  const uint32_t epoch_;
  const bool evaluate_, replay_, state_copied_;
  std::weak_ptr<Loop> loop_;
  bool looped_ = false;
  int adds_ = 0;  // calls of Add in progress
  bool in_commit_ = false, in_apply_ = false;
};

/// Group, GroupStep and SumBucket; and the function with which a session makes a group.
void BindGroup(nb::module_& module, nb::class_<PySession>& session);

}  // namespace muster::python
