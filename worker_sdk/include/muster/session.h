#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/export.h"
#include "muster/status.h"
#include "muster/table.h"

namespace muster {

namespace internal {
class SessionImpl;
class ShardImpl;
class MinibatchImpl;
}  // namespace internal

/// How to reach the job. FromEnvironment reads it from the environment variables on the right;
/// `muster run` sets them. A value; thread-compatible.
struct MUSTER_EXPORT SessionOptions {
  std::string master_address;  // "127.0.0.1:7070"            MUSTER_MASTER
  std::string worker_name;     // "worker-0"                  MUSTER_NODE
  std::string slot_file;       // progress for the supervisor MUSTER_SLOT_FILE; empty: none
  uint64_t connect_timeout_ms = 30'000;
  /// Counts this worker's starts in the run, from 1; 0 if it is not known. MUSTER_START
  uint64_t start = 0;
  /// The id in the job's journal. The session then ignores the masters of other jobs. If it is
  /// empty, the session joins the job of the first master that answers. MUSTER_JOB_ID
  std::string job_id;
  static SessionOptions FromEnvironment();
};

/// The rows of a pull: `values: [num_keys, dim] float32 row-major`. A dense tensor is one row with
/// all its elements. A view; it is valid and constant until the loop leaves the minibatch. Reading
/// it is thread-safe. While a dense tensor does not change, minibatches share its memory.
class MUSTER_EXPORT Rows {
 public:
  Rows(const float* values, size_t num_keys, size_t dim)
      : values_(values), num_keys_(num_keys), dim_(dim) {}
  const float* data() const { return values_; }
  size_t num_keys() const { return num_keys_; }
  size_t dim() const { return dim_; }
  std::span<const float> operator[](size_t key) const { return {values_ + key * dim_, dim_}; }
  std::span<const float> values() const { return {values_, num_keys_ * dim_}; }

 private:
  const float* values_;
  size_t num_keys_;
  size_t dim_;
};

/// The parts of a topic's record besides its value. The views are valid as long as the records of
/// the minibatch. A value.
struct MUSTER_EXPORT TopicRecord {
  std::optional<std::string_view> key;
  /// The record has no value, like a deletion in a compacted topic. records() shows it as empty.
  bool tombstone = false;
  int64_t timestamp_ms = 0;  // since the Unix epoch; 0 if the record has none
  uint32_t partition = 0;    // of the topic
  uint64_t offset = 0;
};
struct MUSTER_EXPORT TopicHeader {
  std::string_view name;
  std::optional<std::string_view> value;
};

/// Records that are trained on together; the unit of pushing. Not thread-safe: only the thread that
/// runs the loop may use it.
class MUSTER_EXPORT Minibatch {
 public:
  /// Lines without their line ends, or the values of a topic's records. The order is the same in
  /// every run of the shard. A line has at most 16 MiB; a job with a longer line does not start.
  /// Valid until the loop leaves the minibatch.
  std::span<const std::string_view> records() const;
  /// True if the dataset is a topic.
  bool topic() const;
  /// The other parts of records()[record]. If topic() is false, or if there is no such record, the
  /// session fails.
  TopicRecord topic_record(size_t record) const;
  std::vector<TopicHeader> topic_headers(size_t record) const;
  /// True in a dataset of mode `evaluate`. Pulls then create no rows, and if you call Push, the
  /// session fails.
  bool evaluate() const;
  /// The name of the dataset.
  std::string_view dataset() const;
  /// The epoch, counted from 0.
  uint32_t epoch() const;
  /// A seed for random numbers in the trainer. It is the same in every run of this minibatch.
  uint64_t seed() const;
  /// The position of the minibatch in the job, counted over all train datasets. Learning-rate
  /// schedules are functions of it. In an evaluate dataset, it is the position in that dataset.
  uint64_t step() const;

  /// Requests rows ahead of time; call it in `prepare`. Keys may repeat.
  void Need(const Table& table, std::span<const uint64_t> keys);
  void Need(const DenseTensor& tensor);
  /// A place where `prepare` can keep what it parsed, for the loop.
  std::any& user_data();

  /// The rows of `keys` in this order; keys may repeat. Blocks until the rows have arrived, so a
  /// Need with the same keys in `prepare` saves the wait. After the lease is lost, all values are
  /// 0.
  Rows Pull(const Table& table, std::span<const uint64_t> keys);
  Rows Pull(const DenseTensor& tensor);

  /// Adds gradients `[keys.size(), dim] float32 row-major`. Gradients of a repeated key are summed.
  /// Commit sends them.
  ///
  /// Memory: if minibatches have more than 64 MiB of rows, a loop holds about three times the rows
  /// of one: the rows of the current and of the next minibatch, and the gradients of one until the
  /// servers have acknowledged them. So the first Push of a minibatch waits until the minibatch
  /// before is acknowledged. While some servers or lanes have answered and others have not, the
  /// loop holds the rows of one more minibatch.
  void Push(const Table& table, std::span<const uint64_t> keys, std::span<const float> gradients);
  void Push(const DenseTensor& tensor, std::span<const float> gradient);
  /// Ends the minibatch and sends the gradients, one part per partition. Blocks while more than
  /// spec.training.unacknowledgedMinibatchesMax minibatches are unacknowledged.
  ///
  /// The keys that a minibatch pushes should depend on its records alone. If a server loses a part
  /// of the minibatch, the minibatch runs again, and the keys of that run count. If these keys do
  /// not lie where the lost part was, a line on stderr names the minibatch.
  ///
  /// If a gradient is NaN, infinite, or too large for the job's spec.training.wireEncoding (float16
  /// ends at 65504), nothing is sent, and the shard fails with the table's name.
  void Commit();

  /// Adds `value` with `weight` to a weighted mean of the epoch; each value counts exactly once. If
  /// the value or the weight is NaN or infinite, or if the weight is below 0, the shard fails. If a
  /// shard uses one name in both Metric and Auc, or if a name has more than 256 bytes, the session
  /// fails.
  void Metric(std::string_view name, double value, double weight);
  /// Adds scores in [0, 1], each with its label, to the area under the epoch's ROC curve. If a
  /// score is NaN or outside [0, 1], the shard fails. Names follow the rules of Metric.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const bool> labels);
  /// The same with labels in bytes, 0 or not 0: a std::vector<bool> is no span of bool.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const uint8_t> labels);
  /// Reports that records()[record] cannot be used. The record is counted, and the job shows its
  /// file and line, or its topic, partition and offset. The job fails if more than
  /// spec.training.rejectedRecordsMax records are rejected. If the dataset has a dead-letter topic,
  /// the record is also written there before its shard is done.
  void Reject(size_t record, std::string_view reason);

  explicit Minibatch(internal::MinibatchImpl* impl) : impl_(impl) {}

 private:
  internal::MinibatchImpl* impl_;
};

/// The SDK calls it for a minibatch some minibatches before the loop gets there, on the loop's
/// thread.
using Prepare = std::function<void(Minibatch&)>;

/// The minibatches of a shard; a loop can run through them once. If the loop did not call Commit,
/// the step to the next minibatch calls it. Not thread-safe: only the shard's thread may use it.
class MUSTER_EXPORT MinibatchRange {
 public:
  /// Part of its range. Not thread-safe: only the shard's thread may use it.
  class MUSTER_EXPORT Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Minibatch;
    using difference_type = std::ptrdiff_t;
    using pointer = Minibatch*;
    using reference = Minibatch&;
    explicit Iterator(internal::ShardImpl* shard) : shard_(shard) {}
    Minibatch& operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return shard_ == other.shard_; }

   private:
    internal::ShardImpl* shard_;
  };
  MinibatchRange(internal::ShardImpl* shard, Prepare prepare)
      : shard_(shard), prepare_(std::move(prepare)) {}
  Iterator begin();
  Iterator end() { return Iterator(nullptr); }

 private:
  internal::ShardImpl* shard_;
  Prepare prepare_;
};

/// A leased shard. Not thread-safe: it stays with the thread that runs its loop, and must not
/// outlive its session. If you leave the loop early without Fail, the shard is handed back. If that
/// happens three times in a row and no run gets further than an earlier one, it counts as one
/// failure, unless the worker leaves.
class MUSTER_EXPORT Shard {
 public:
  /// The minibatches of the shard, for a loop. The loop ends early if the lease is lost. After a
  /// server was restored, a shard may come again; it then has only the minibatches of which the
  /// server lost something.
  MinibatchRange Minibatches(Prepare prepare = nullptr);
  /// Reports that the trainer failed on this shard. The loop ends, and the shard is tried again,
  /// here or on another worker. After spec.leases.failuresMax failures, the shard is FAILED.
  void Fail(std::string_view reason);
  /// "dataset/epoch/index", for logs.
  std::string id() const;
  bool evaluate() const;
  /// The first line of the source file if the dataset has a header, otherwise empty.
  std::string_view header() const;

  explicit Shard(std::unique_ptr<internal::ShardImpl> impl);
  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

 private:
  std::unique_ptr<internal::ShardImpl> impl_;
};

/// A worker's connection to its job. Thread-safe except for moving and destruction: several threads
/// may each run their own shards. A process may have only one session, because the slot file has
/// room for one.
///
/// If the process crashes (for example by SIGSEGV, or by an exit code other than 0), the crash
/// counts as a failure of the shard whose loop was running. If several loops were running, the
/// shard is not known, and the crash counts for no shard. To find the shard, a process that `muster
/// run` has restarted first runs one loop alone, until that loop has completed a shard, for at most
/// a minute.
class MUSTER_EXPORT Session {
 public:
  /// Waits for the master for at most connect_timeout_ms, with a line on stderr every 2 s, and
  /// starts the background threads.
  static Result<Session> Connect(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Hands back the shards that the session holds and stops the threads. Waits at most 5 s.
  ~Session();

  /// Registers a table. Every worker must give the same definition. If definitions differ, or if an
  /// option is invalid, the session fails: status() says why, NextShard() returns nullopt, and
  /// Finish() returns 1.
  Table SparseTable(SparseTableOptions options);
  DenseTensor DenseTable(DenseTableOptions options);

  /// The next shard. Blocks while there is none, because a replay may bring more. Returns nullopt
  /// if the job is over or drains, if this worker leaves, or if the session failed.
  ///
  /// If a source file is missing, or if it is not the file that the job has indexed, the job fails.
  /// While this process is out of file descriptors, memory or disk space, it hands shards back
  /// without counting a failure, and tries again after a pause of 0.1 to 5 s, with a line on
  /// stderr. The session keeps up to 64 source files open.
  std::optional<Shard> NextShard();

  /// Ends this worker's part in the job, for example after SIGTERM (the SDK handles no signals).
  /// From now on, NextShard returns nullopt, and waiting shards are handed back. Loops may finish
  /// their shards, or you may leave them. Finish() returns 0. Idempotent. Do not call it from a
  /// signal handler.
  void Leave();

  /// Why the session failed; OK if it did not.
  Status status() const;
  /// Waits until the master has answered all reports, and returns the exit code for main(). The
  /// code is 0 if the job is over for this worker, or drains. Otherwise it is 1, with a message on
  /// stderr: the session failed, or the trainer stopped to ask for shards before NextShard returned
  /// nullopt, without Leave.
  ///
  /// Call it last, when every loop has ended. If a shard is still in a loop of any thread, it is
  /// handed back at once without counting a failure, and the loop ends as after a lost lease. Later
  /// calls return the same code as the first. Thread-safe.
  int Finish();

 private:
  explicit Session(std::unique_ptr<internal::SessionImpl> impl);
  std::unique_ptr<internal::SessionImpl> impl_;
};

}  // namespace muster
