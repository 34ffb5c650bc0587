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

/// How to reach the job. A value; thread-compatible. `muster run` sets the environment that
/// FromEnvironment reads.
struct MUSTER_EXPORT SessionOptions {
  std::string master_address;  // "127.0.0.1:7070"            MUSTER_MASTER
  std::string worker_name;     // "worker-0"                  MUSTER_NODE
  std::string slot_file;       // progress for the supervisor MUSTER_SLOT_FILE; empty: none
  uint64_t connect_timeout_ms = 30'000;
  uint64_t start = 0;  // 1: the first start of this worker in the run; 0: not known: MUSTER_START
  /// Of the job, as its journal knows it; masters of other jobs are then not spoken with. Empty:
  /// the job of the first master that answers.           MUSTER_JOB_ID
  std::string job_id;
  static SessionOptions FromEnvironment();
};

/// Rows as pulled: `values: [num_keys, dim] float32 row-major`, or a dense tensor as one row of all
/// its elements. A view, valid and constant until the minibatch is left; reading it is thread-safe.
/// Minibatches between which nobody changed a dense tensor share its memory.
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

/// What a record of a topic has besides its value. The views live as long as the minibatch's
/// records. A value.
struct MUSTER_EXPORT TopicRecord {
  std::optional<std::string_view> key;
  /// It has no value at all, as deletions in a compacted topic; records() then shows an empty one.
  bool tombstone = false;
  int64_t timestamp_ms = 0;  // since the Unix epoch; 0: it has none
  uint32_t partition = 0;    // of the topic
  uint64_t offset = 0;
};
struct MUSTER_EXPORT TopicHeader {
  std::string_view name;
  std::optional<std::string_view> value;
};

/// Records that are learnt from together; the unit of pushing. Not thread-safe; used by the thread
/// that runs the loop.
class MUSTER_EXPORT Minibatch {
 public:
  /// Lines without their line end, in the order in which every run of the shard sees them; of a
  /// topic, the values. A line has up to 16 MiB; a job with a longer one does not start. Valid
  /// until the minibatch is left.
  std::span<const std::string_view> records() const;
  /// The dataset is a topic.
  bool topic() const;
  /// Of records()[record]. An error of the program when topic() is false, or there is no such one.
  TopicRecord topic_record(size_t record) const;
  std::vector<TopicHeader> topic_headers(size_t record) const;
  /// True in a dataset of mode `evaluate`: pulls create nothing, Push is an error of the program.
  bool evaluate() const;
  /// Name of the dataset, and epoch (from 0).
  std::string_view dataset() const;
  uint32_t epoch() const;
  /// A seed that every run of this minibatch gets again: for random numbers inside the trainer.
  uint64_t seed() const;
  /// Position of the minibatch in the job, over all its train datasets; learning-rate schedules
  /// are functions of it. In an evaluate dataset counted in that dataset.
  uint64_t step() const;

  /// Asks for rows ahead of time; for use in `prepare`. Keys may repeat.
  void Need(const Table& table, std::span<const uint64_t> keys);
  void Need(const DenseTensor& tensor);
  /// Whatever `prepare` parsed, kept for the loop.
  std::any& user_data();

  /// Rows of `keys` (they may repeat), in that order. Blocks until they are here; at once if they
  /// were asked for with Need and the same keys. After a lost lease: rows of the right shape.
  Rows Pull(const Table& table, std::span<const uint64_t> keys);
  Rows Pull(const DenseTensor& tensor);

  /// Adds gradients `[keys.size(), dim] float32 row-major`; rows of a repeated key are summed. Sent
  /// by Commit.
  ///
  /// Of minibatches with more than 64 MiB of rows a loop holds three times that: the rows of the
  /// current one, those of the next, and the gradients of one, until they are acknowledged: the
  /// first Push of a minibatch waits for the minibatch before. While servers or lanes are not
  /// equally far with their answers, rows of one more.
  void Push(const Table& table, std::span<const uint64_t> keys, std::span<const float> gradients);
  void Push(const DenseTensor& tensor, std::span<const float> gradient);
  /// Ends the minibatch: what was pushed leaves as one part per partition. Which keys those are
  /// should follow from the records alone: a minibatch that runs again, because a server has lost
  /// a part of it, has its effect where it pushes then, and a line on stderr names it when that is
  /// not where it was lost. Blocks while more than
  /// the job's bound of minibatches are unacknowledged. NaN, infinity, or a gradient too large for
  /// the job's spec.training.wireEncoding (float16 ends at 65504): nothing is sent and the shard
  /// fails with the table's name.
  void Commit();

  /// A weighted mean of the epoch, merged exactly once. A value or weight that is NaN or infinite,
  /// or a weight below 0: the shard fails. A name that a shard gives to both Metric and Auc is an
  /// error of the program, as a name over 256 bytes is.
  void Metric(std::string_view name, double value, double weight);
  /// Scores in [0, 1] with their labels, one each, for the area under the ROC curve of the epoch.
  /// NaN, or a score outside [0, 1]: the shard fails. Names as of Metric.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const bool> labels);
  /// The same with labels in bytes, 0 or not 0: a std::vector<bool> is no span of bool.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const uint8_t> labels);
  /// records()[record] cannot be used: counted and reported with file and line, or topic, partition
  /// and offset; over the job's limit the job fails. Where the dataset has a dead-letter topic, the
  /// record is written there, too, before its shard is done.
  void Reject(size_t record, std::string_view reason);

  explicit Minibatch(internal::MinibatchImpl* impl) : impl_(impl) {}

 private:
  internal::MinibatchImpl* impl_;
};

/// Called for a minibatch some minibatches before the loop reaches it, on the loop's own thread.
using Prepare = std::function<void(Minibatch&)>;

/// The minibatches of a shard, to be run through once. Not thread-safe; used by the shard's thread.
/// Going on to the next minibatch commits the one before, if Commit was not called.
class MUSTER_EXPORT MinibatchRange {
 public:
  /// Belongs to its range and, like it, to the shard's thread: not thread-safe.
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

/// A shard on lease. Not thread-safe: it stays with the thread that runs its loop, and must not
/// outlive its session. Leaving the loop early without Fail hands the shard back; three times in a
/// row that came no further than a run before are one failure, unless the worker leaves.
class MUSTER_EXPORT Shard {
 public:
  /// The loop over the shard's minibatches; it ends early when the lease is lost. A shard that
  /// comes again because a server was restored has only those of which that server has lost
  /// something.
  MinibatchRange Minibatches(Prepare prepare = nullptr);
  /// The trainer cannot do this shard: its loop ends, it is tried again, here or elsewhere, and
  /// FAILED after the job's limit.
  void Fail(std::string_view reason);
  /// "dataset/epoch/index", for logs.
  std::string id() const;
  bool evaluate() const;
  /// First line of the source file, when the dataset has a header; else empty.
  std::string_view header() const;

  explicit Shard(std::unique_ptr<internal::ShardImpl> impl);
  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

 private:
  std::unique_ptr<internal::ShardImpl> impl_;
};

/// A worker's connection to its job. Thread-safe, but for moving and destruction: several threads
/// may each run their own shards. One session a process: the slot file tells of one.
///
/// A crash of the process (SIGSEGV and the like, or an exit that is not 0) is charged to the shard
/// whose loop it was in. With several loops nobody knows which shard it was, and none is charged;
/// so that it can be next time, a process that `muster run` started again lets one loop in alone
/// until it has completed a shard, or for a minute.
class MUSTER_EXPORT Session {
 public:
  /// Finds the master (waiting up to connect_timeout_ms, with a line on stderr every 2 s) and
  /// starts the background threads.
  static Result<Session> Connect(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Hands back what is held and stops the threads; waits at most 5 s.
  ~Session();

  /// Registers a table; the same definition from every worker. A conflict, or a bad option, makes
  /// the session fail: status() says why, NextShard() returns nothing, Finish() returns 1.
  Table SparseTable(SparseTableOptions options);
  DenseTensor DenseTable(DenseTableOptions options);

  /// The next shard; blocks while there is none (a replay may bring more). Nothing: the job is over
  /// or drains, or the session failed.
  ///
  /// A source file that is gone, or is not the one that the job has indexed, fails the job. While
  /// this process is out of file descriptors, memory or disk, shards go back without being counted
  /// as failed, and it tries again after a pause of 0.1 to 5 s, with a line on stderr. Up to 64
  /// source files are kept open.
  std::optional<Shard> NextShard();

  /// For a trainer that was told to end (by SIGTERM, say; the SDK handles no signals): NextShard
  /// returns nothing from now on, shards that wait are handed back, loops may go on to the end of
  /// their shards or be left, and Finish() returns 0. Not to be called from a signal handler.
  /// Idempotent.
  void Leave();

  Status status() const;
  /// Waits until everything reported is answered; the exit code for main(): 0 when the job is over
  /// for this worker (or drains), else 1 with a message on stderr: the session failed, or the
  /// trainer left its loop before NextShard returned nothing, without Leave.
  ///
  /// Call it last, when every loop has ended. A shard that is still in a loop, of whatever thread,
  /// is handed back at once, which is not counted as its failure; its loop ends as after a lost
  /// lease. Further calls return what the first one did. Thread-safe.
  int Finish();

 private:
  explicit Session(std::unique_ptr<internal::SessionImpl> impl);
  std::unique_ptr<internal::SessionImpl> impl_;
};

}  // namespace muster
