#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/export.h"
#include "muster/minibatch.h"
#include "muster/session.h"
#include "muster/status.h"

namespace muster {

namespace internal {
class GroupImpl;
class GroupStepImpl;
}  // namespace internal
class DiLoCo;

/// Synchronous training: a job with `spec.group`. All members of the group have the same state, and
/// change it together, step by step. A step is a shard: its minibatches are divided among the
/// members, their gradients are summed, and every member applies the same sums to its state.
/// Members may die and join at any time. Every minibatch is in exactly one step that was applied.
///
///   muster::Group group = session.Group().value();
///   muster::SumBucket bucket = group.AddBucket("gradients", weights.size());
///   group.AddState("weights", std::span(weights));
///   while (auto step = group.NextStep()) {
///     for (muster::Minibatch& batch : step->Minibatches()) {
///       ...
///       step->Add(bucket, gradient);
///       batch.Metric("loss", loss, records);
///     }
///     step->Commit([&] {
///       std::span<const float> sum = step->Sum(bucket);
///       for (size_t i = 0; i < weights.size(); ++i) {
///         weights[i] -= learning_rate * sum[i] / step->records();
///       }
///     });
///   }
///   if (group.HasFinalState()) WriteModel(weights);
///   return session.Finish();
///
/// "The session fails" means the same as in muster/minibatch.h: the call cannot work, whatever the
/// data. Group::status() says why, NextStep() returns nullopt, and Session::Finish() returns 1.

/// How the elements of a bucket are added. A value; thread-compatible.
enum class SumType : uint8_t {
  /// Each minibatch's gradient is rounded to a multiple of 2^-fraction_bits, and these are added as
  /// integers. So the sum has the same bits whoever computes which minibatch, and in which order: a
  /// run in which members die ends with the same weights as a run without. 8 bytes per element.
  kFixedPoint,
  /// float32 additions. Two runs with other members differ in the last bits. 4 bytes per element.
  kFloat32,
  /// A member adds its minibatches in float32. Between members, sums are bfloat16 with 8 bits of
  /// precision. 2 bytes per element.
  kBfloat16,
};
struct SumOptions {
  SumType type = SumType::kFixedPoint;
  /// Of kFixedPoint, 0 to 40. Rounding changes an element by at most 2^-(fraction_bits + 1) per
  /// minibatch, and a minibatch's gradient must be below 2^(50 - fraction_bits): with 24 bits,
  /// 3e-8 and 6.7e7.
  uint32_t fraction_bits = 24;
  /// The gradients and the sum are in the memory of the GPU of CollectiveOptions: the bucket has
  /// AddDevice and DeviceSum in place of Add and Sum. Only with the backend kNccl. The bits of the
  /// sum are the same. Other members may differ in this.
  bool on_device = false;
  /// The trainer adds up the gradients of its minibatches itself, and gives their sum to Put after
  /// the loop, in place of Add. The bits of the sum then depend on which member has computed what,
  /// also with kFixedPoint. Not with on_device. Other members may differ in this.
  bool after_loop = false;
};

/// What adds the buckets among the members. All members have the same, and a job that is continued
/// has the one with which it began. A value; thread-compatible.
struct CollectiveOptions {
  enum class Backend : uint8_t {
    /// The members' own ring, over shared memory, UNIX sockets, TCP or TLS.
    kRing,
    /// NCCL 2.14 or later, for members with a GPU each. Gradients and sums of buckets that are not
    /// on_device are copied between the memory of this process and the GPU. The connections between
    /// GPUs are NCCL's: they are
    /// neither encrypted nor checked, whatever spec.security says.
    kNccl,
    /// A library of the user's, with the interface of muster/collective_plugin.h.
    kPlugin,
  };
  Backend backend = Backend::kRing;
  /// Of kNccl: the number of the GPU, as CUDA counts those that the process may use.
  int device = 0;
  /// The library's file. Of kNccl, empty means libnccl.so.2 as the dynamic linker finds it; a
  /// library that the process has loaded already, such as PyTorch's, is found by that name.
  std::string library{};
  /// Of kNccl: CUDA's driver; empty: libcuda.so.1.
  std::string driver{};
};

/// A handle of a bucket; small and cheap to copy. Use it only with the group that made it.
/// Thread-safe (immutable).
class MUSTER_EXPORT SumBucket {
 public:
  uint64_t elements() const { return elements_; }

 private:
  friend class Group;
  friend class GroupStep;
  SumBucket(uint32_t index, uint64_t elements) : index_(index), elements_(elements) {}
  uint32_t index_;
  uint64_t elements_;
};

/// One step. Not thread-safe: it belongs to the thread that called NextStep, except for Add. At
/// most one step exists at a time, and it must not outlive its group.
class MUSTER_EXPORT GroupStep {
 public:
  /// The number of the step in the job, counted from 1 over all steps, evaluations included. Of a
  /// replay, the number of the next step.
  uint64_t step() const;
  /// The epoch of the step's data, counted from 0.
  uint32_t epoch() const;
  /// True for data of a dataset of mode `evaluate`. Such a step has no sums: if you call Add, the
  /// session fails, and Commit does not call `apply`. Only the metrics of its minibatches count.
  bool evaluate() const;
  /// Only in a job with parameter servers: the step has happened before, and a server that was
  /// restored may have lost a part of what it pushed to tables. The loop runs over its minibatches
  /// again as usual, and pushes; what the tables still have is skipped. Add does nothing, Commit
  /// returns false without calling `apply`, and metrics are not counted again.
  bool replay() const;
  /// The records of the whole step, over all members: divide by it in `apply` to get the mean
  /// gradient. Before, it is what this process has read, and of a topic, others may differ.
  uint64_t records() const;
  /// True if the registered state has been copied from another process, or from a checkpoint, since
  /// the step before. A trainer that trains on another copy of it, in the memory of a GPU, must
  /// then read the registered memory again before the loop and before Commit.
  bool state_copied() const;
  /// The minibatches of this member, for a loop; see Shard::Minibatches. There may be none: the
  /// member replays a step that happened before it joined, or there are more members than
  /// minibatches. The loop ends early if its gradients are of no use any more.
  ///
  /// In a job with parameter servers (spec.replicaSpecs.ps.replicas), minibatches may use tables as
  /// in other jobs: each push takes effect exactly once, also if the step is tried again, by this
  /// member or by another one. Only its time is not that of the step: it takes effect when the
  /// server has it, so other members may see it in the same step. Minibatch::Commit sends what was
  /// pushed; otherwise, the end of the minibatch does. The keys should depend on the records alone.
  MinibatchRange Minibatches(Prepare prepare = nullptr);

  /// Adds the gradient of the loop's current minibatch to a bucket, `[elements] float32`: the sum
  /// over the minibatch's records, not the mean. Copies it, and never blocks for other members.
  /// Call it at most once per minibatch and bucket; a minibatch without a call adds zeros.
  ///
  /// A bucket is summed among the members as soon as it has the last minibatch of this member. So
  /// call Add for the last layers of a model while the backward pass still computes the first ones.
  /// Buckets of less than 1 MiB are summed with others of their type that were registered next.
  ///
  /// If an element is NaN, infinite, or too large for the bucket's type, the step fails like with
  /// Fail; the reason names the bucket and the element. If the size is wrong, if the bucket has the
  /// minibatch already, or if it is called before or after the loop, the session fails. Several
  /// threads may call Add for different buckets at once.
  void Add(const SumBucket& bucket, std::span<const float> gradient);

  /// The same for a bucket with SumOptions::on_device. `gradient` is an address of the GPU, of
  /// `elements` float32, and `stream` is the CUDA stream (cudaStream_t or CUstream; null is the
  /// default stream) that computes them. They are added in that stream, after what is in it now;
  /// the call does not wait for that. So the next work in the stream may overwrite them, and they
  /// need not be copied or synchronised with before.
  ///
  /// NaN, infinity and what is too large are found when the bucket is summed, and fail the step
  /// like with Add. If the GPU reports an error, the session fails.
  void AddDevice(const SumBucket& bucket, const float* gradient, uint64_t elements, void* stream);
  /// After the loop, for a bucket with SumOptions::after_loop: the sum of the gradients over all
  /// minibatches that this loop has had, `[elements] float32`; zeros if it had none. If the step
  /// comes again, the next loop has other minibatches: begin its sum with zeros, because the
  /// library keeps what was given before.
  ///
  ///   std::ranges::fill(sum, 0);
  ///   for (muster::Minibatch& batch : step->Minibatches()) AddGradient(batch, sum);
  ///   step->Put(bucket, sum);
  ///   step->Commit(apply);
  ///
  /// Call it once in every step that is no evaluation, between the loop and Commit; otherwise, or
  /// if the size is wrong, the session fails. Numbers that do not fit fail the step as with Add.
  void Put(const SumBucket& bucket, std::span<const float> sum);

  /// Ends the step: waits until every member has the sums and the master has written the step to
  /// its journal. Then calls `apply` on this thread, once, and returns true: the step has happened.
  ///
  /// Returns false without calling `apply` if it has not happened yet, because a member joined or
  /// died, or a step failed. NextStep then returns the same step again, with those minibatches that
  /// this member has not computed yet. The library keeps the gradients of the others, and their
  /// metrics. It also returns false if the group is over for this process: NextStep then returns
  /// nullopt.
  ///
  /// `apply` changes the registered state. It may depend on nothing but the registered state,
  /// Sum(), records(), step() and epoch(), because a member that joins calls it for steps whose
  /// data it has never seen, and must come to the same bits. So no random numbers without a seed
  /// from step(), no threads whose order matters, and no counters outside of the state. The state
  /// must not change anywhere else. Members compare digests of their states. Who has other bits
  /// than most copies theirs; without a majority, the job fails. So use processors of one kind. If
  /// `apply` throws, Commit throws the same, and the state is half changed: the next NextStep
  /// copies it anew from another member, or from a checkpoint.
  ///
  /// Blocks, with a line on stderr after 2 s that says what it waits for. A second call returns
  /// what the first one did.
  bool Commit(const std::function<void()>& apply);
  /// The sum of a bucket over all minibatches of the step, `[elements] float32`. Only in `apply`,
  /// and valid until it returns; anywhere else, the session fails, and the span is empty.
  std::span<const float> Sum(const SumBucket& bucket) const;
  /// The same for a bucket with SumOptions::on_device: an address of the GPU. The sum is complete,
  /// so any stream may read it. The memory is used again after `apply`: wait for what reads it
  /// (cudaStreamSynchronize) before `apply` returns.
  const float* DeviceSum(const SumBucket& bucket) const;
  /// Reports that the trainer failed on this step. Its gradients of the step are dropped, and all
  /// members try the step again. After spec.leases.failuresMax failures, the shard is FAILED, and
  /// the step goes on with the next one. The loop ends, and Commit returns false. Idempotent. A
  /// step that is destroyed without Commit has failed, too.
  void Fail(std::string_view reason);

  explicit GroupStep(std::unique_ptr<internal::GroupStepImpl> impl);
  GroupStep(GroupStep&&) noexcept;
  GroupStep& operator=(GroupStep&&) noexcept;
  ~GroupStep();

 private:
  friend class DiLoCo;
  std::unique_ptr<internal::GroupStepImpl> impl_;
};

/// This process's part in the group of its job: Session::Group makes it. Not thread-safe, except
/// for status() and HasFinalState(). It must not outlive its session.
///
/// First register all buckets and all state, in the same order in every member, with the same
/// names, types and sizes. A process whose registrations differ from those of the group is refused:
/// the session fails with the first difference.
class MUSTER_EXPORT Group {
 public:
  /// Registers a bucket of `elements` float32 gradients. `name` has 1 to 256 bytes;
  /// buckets and state share the names. The session fails if the name is not valid or taken, if
  /// there are no elements or more than 2^34, if an option is invalid, if it is the 65537th bucket
  /// or piece of state, or after the first NextStep. You may still use the handle; its calls do
  /// nothing.
  SumBucket AddBucket(std::string_view name, uint64_t elements, SumOptions options = {});
  /// Registers a piece of the state: weights, the optimizer's moments, counters. Everything that
  /// `apply` reads and changes must be registered, because this is what joining members copy and
  /// what checkpoints contain. The memory stays the caller's. It must stay where it is as long as
  /// the group exists, and the library reads and writes it only inside NextStep and Commit, or
  /// while the state does not change. An empty span is allowed. Names and errors are those of
  /// AddBucket.
  void AddState(std::string_view name, std::span<float> values);
  void AddState(std::string_view name, std::span<double> values);
  void AddState(std::string_view name, std::span<int64_t> values);
  void AddState(std::string_view name, std::span<std::byte> values);

  /// The next step. The first call takes the state as it is then for the initial state; make it
  /// from the job's seed, so that it is the same in every process. A process whose initial state
  /// differs from that of the group copies the group's. The first call also connects to the other
  /// members. A process that joins later copies the state in here, and then gets the steps that it
  /// has missed since, without minibatches.
  ///
  /// Blocks while there is no step, for example while the group has fewer members than it needs,
  /// with a line on stderr after 2 s that says why. Returns nullopt if the job is over or drains,
  /// if this worker leaves (Session::Leave, at the end of a step), or if the session failed.
  ///
  /// The step before must have been committed, or Commit must have returned false; otherwise it
  /// fails as with GroupStep::Fail.
  std::optional<GroupStep> NextStep();

  /// True if the job has succeeded and the registered state is the one after its last step. Ask it
  /// after NextStep has returned nullopt, and write the result of the job only if it is true:
  ///
  ///   if (group.HasFinalState()) WriteModel(weights);
  ///
  /// It is false if the job has failed or was cancelled, if this worker has left, if the job drains
  /// (it goes on later), and if the job ended while this process still copied the state: such a
  /// process is not waited for, and Finish() returns 0 all the same. In a job that succeeds, every
  /// member of the last step has the final state, so at least one process sees true, unless all
  /// die before they ask; `muster export` still has the state then. Thread-safe.
  bool HasFinalState() const;

  /// Why the group or its session failed; OK if it did not. Thread-safe.
  Status status() const;

  explicit Group(std::unique_ptr<internal::GroupImpl> impl);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  /// Leaves the group: the members go on without this process at once. Waits for the master for 1 s
  /// at most. Then Session::Group may make another one, which begins without a state.
  ~Group();

 private:
  friend class DiLoCo;
  std::unique_ptr<internal::GroupImpl> impl_;
};

}  // namespace muster
