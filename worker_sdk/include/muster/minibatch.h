#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
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
class MinibatchImpl;
}  // namespace internal

/// The rows of a pull: `values: [num_keys, dim] float32 row-major`. A dense tensor is one row with
/// all its elements. The values are constant, also if the lease is lost. They are valid until the
/// loop leaves the minibatch, and besides as long as a copy of these Rows, or of owner(), exists;
/// that may be longer than the session. Reading is thread-safe. While a dense tensor does not
/// change, minibatches share its memory.
class MUSTER_EXPORT Rows {
 public:
  /// `owner` keeps the values; without one, they are the caller's.
  Rows(const float* values, size_t num_keys, size_t dim, std::shared_ptr<const void> owner = {})
      : values_(values), num_keys_(num_keys), dim_(dim), owner_(std::move(owner)) {}
  const float* data() const { return values_; }
  size_t num_keys() const { return num_keys_; }
  size_t dim() const { return dim_; }
  /// The row of the key at this position; `key` must be less than num_keys().
  std::span<const float> operator[](size_t key) const { return {values_ + key * dim_, dim_}; }
  std::span<const float> values() const { return {values_, num_keys_ * dim_}; }
  /// Keeps the memory of the values, for who has pointers into it.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  const float* values_;
  size_t num_keys_;
  size_t dim_;
  std::shared_ptr<const void> owner_;
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

/// A kind of objects that the trainer makes of the outputs of a shard; see Minibatch::Output. A
/// value.
struct MUSTER_EXPORT ObjectFormat {
  /// What the name of the object ends with, such as ".parquet": a dot, and 1 to 15 lower-case
  /// letters or digits. The same in all calls for a shard.
  std::string suffix;
  /// Makes the object from the pieces, which are in the order of the calls, and valid until it
  /// returns. It should make the same bytes of the same pieces. Called once, on the loop's thread,
  /// when the last minibatch has run; that of the first call for the shard counts. If it returns an
  /// error, the shard fails with its message; with kInterrupted, the shard goes back. It must not
  /// throw.
  std::function<Result<std::string>(std::span<const std::string_view> pieces)> join;
};

/// Records that are trained on together; the unit of pushing. Not thread-safe: only the thread that
/// runs the loop may use it.
///
/// "The session fails" below means: the call cannot work, whatever the data. Session::status() says
/// why, every loop ends, and Finish() returns 1. "The shard fails" means the same as Shard::Fail:
/// the shard is tried again.
///
/// After the lease is lost or the session has failed, the loop ends at the next step. Until then,
/// every call returns: pushes, metrics and rejected records do nothing, and rows that have not
/// arrived are 0.
class MUSTER_EXPORT Minibatch {
 public:
  /// Lines without their line ends, or the values of a topic's records; of record numbers, each is
  /// empty. There is at least one. The order is the same in every run of the shard. A line has at
  /// most 16 MiB; a job with a longer line does not start. Valid until the loop leaves the
  /// minibatch.
  std::span<const std::string_view> records() const;
  /// The record numbers, if the dataset has `records: N` in place of files: record_numbers()[i], of
  /// 0 to N - 1, belongs to records()[i]. In other datasets, there are none. Valid as long as
  /// records().
  std::span<const int64_t> record_numbers() const;
  /// Keeps the memory of records() and record_numbers(), and of all other records of the shard, as
  /// long as a copy exists; that may be longer than the session.
  std::shared_ptr<const void> records_owner() const;
  /// Records of a whole minibatch: `minibatchSize` of the dataset. This minibatch may have fewer:
  /// one, if the records of an epoch cannot be divided evenly; many, at the end of a topic, if a
  /// topic is slow, and where a topic has gaps. Divide a sum of gradients by this number, and not
  /// by records().size(): then a small minibatch is a small step, as it should be.
  size_t nominal_size() const;
  /// True if the dataset is a topic.
  bool topic() const;
  /// The other parts of records()[record]. If topic() is false, or if there is no such record, the
  /// session fails.
  TopicRecord topic_record(size_t record) const;
  std::vector<TopicHeader> topic_headers(size_t record) const;
  /// True in a dataset of mode `evaluate` or `predict`. The master hands out the shards of the
  /// first after each training epoch, and those of the second after all training, to the same loop.
  /// Commit then sends nothing, and if you call Push, the session fails.
  bool evaluate() const;
  /// True in a dataset of mode `predict`, where the loop gives out what the model says: see Output.
  bool predict() const;
  /// The name of the dataset. Valid until the loop leaves the minibatch.
  std::string_view dataset() const;
  /// The epoch, counted from 0.
  uint32_t epoch() const;
  /// A seed for random numbers in the trainer. It is the same in every run of this minibatch, and
  /// another one in each epoch.
  uint64_t seed() const;
  /// The position of the minibatch in the job, counted from 0 over all train datasets. Schedules of
  /// the learning rate are functions of it. In an evaluate dataset, it is the position in that
  /// dataset.
  uint64_t step() const;

  /// Requests rows ahead of time; call it in `prepare`. The requests of one `prepare` leave
  /// together when it returns. Outside `prepare`, a request leaves at once. Never blocks. Keys may
  /// repeat; no keys request nothing. If the table is not of this session, the session fails.
  void Need(const Table& table, std::span<const uint64_t> keys);
  void Need(const DenseTensor& tensor);
  /// A place where `prepare` can keep what it parsed, for the loop. It starts empty, and is
  /// destroyed with the minibatch.
  std::any& user_data();

  /// The rows of `keys`, `[keys.size(), dim] float32`, in this order; keys may repeat. A row that
  /// was never pushed has its initial values. No keys give no rows, without waiting. Blocks until
  /// the rows have arrived, so a Need with the same keys in `prepare` saves the wait. A second Pull
  /// of the same keys in one minibatch returns the same rows.
  ///
  /// If the lease is lost or the session fails while Pull waits, all values are 0. Compute with
  /// them as usual: their gradients are not sent.
  Rows Pull(const Table& table, std::span<const uint64_t> keys);
  /// The whole tensor as one row, `[1, size] float32`.
  Rows Pull(const DenseTensor& tensor);

  /// Adds gradients `[keys.size(), dim] float32 row-major`. Commit sends them.
  ///
  /// Gradients are summed, never averaged: those of a repeated key, and those of several calls, for
  /// the same table. Nothing is divided by the number of records or of workers. Each minibatch of
  /// each worker is one step of the optimizer on every row that it pushes. So divide by the number
  /// of records yourself if you want the mean (docs/tutorial.md, "Sum or mean?").
  ///
  /// No keys add nothing. If `gradients` has another size, or after Commit, in `prepare` or in an
  /// evaluation, the session fails.
  ///
  /// Memory: if minibatches have more than 64 MiB of rows, a loop holds about three times the rows
  /// of one: the rows of the current and of the next minibatch, and the gradients of one until the
  /// servers have acknowledged them. So the first Push of a minibatch waits until the minibatch
  /// before is acknowledged. While some servers or lanes have answered and others have not, the
  /// loop holds the rows of one more minibatch.
  void Push(const Table& table, std::span<const uint64_t> keys, std::span<const float> gradients);
  /// The same for all elements of the tensor, `[size] float32 row-major`.
  void Push(const DenseTensor& tensor, std::span<const float> gradient);
  /// Ends the minibatch and sends the gradients, one part per partition. Returns before the servers
  /// have them, but blocks while more than spec.training.unacknowledgedMinibatchesMax minibatches
  /// are unacknowledged. A second call, or a call in `prepare`, does nothing. A minibatch without
  /// any Push counts as trained, too.
  ///
  /// The keys that a minibatch pushes should depend on its records alone. If a server loses a part
  /// of the minibatch, the minibatch runs again, and the keys of that run count. If these keys do
  /// not lie where the lost part was, a line on stderr names the minibatch.
  ///
  /// If a gradient is NaN, infinite, or too large for the job's spec.training.wireEncoding (float16
  /// ends at 65504), nothing is sent, and the shard fails with the table's name.
  void Commit();

  /// Adds `value` with `weight` to the epoch's weighted mean, sum(value * weight) / sum(weight).
  /// For the mean loss of a minibatch, the weight is the number of records behind it. Each call
  /// counts exactly once in the epoch, however often the minibatch runs. A weight of 0 adds
  /// nothing. If the value or the weight is NaN or infinite, or if the weight is below 0, the shard
  /// fails. A name has 1 to 256 bytes. A shard has at most 256 names, and uses a name either in
  /// Metric or in Auc. Otherwise, the session fails.
  void Metric(std::string_view name, double value, double weight);
  /// Adds scores in [0, 1], each with its label, to the area under the epoch's ROC curve. The job
  /// also shows their average precision as `NAME.average_precision`, and the predicted positives
  /// divided by the observed ones as `NAME.calibration`. Scores are counted in 4096 bins, finer
  /// near 0 and 1, so that all three hold for rare positives. If a score is NaN or outside [0, 1],
  /// the shard fails. If there are not as many labels as scores, the session fails. Names follow
  /// the rules of Metric.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const bool> labels);
  /// The same with labels in bytes, 0 or not 0: a std::vector<bool> is no span of bool.
  void Auc(std::string_view name, std::span<const float> scores, std::span<const uint8_t> labels);
  /// The same for logits, ln(p / (1 - p)), which are any finite numbers: the outputs of a network
  /// before its sigmoid. Logits beyond -22 and 22 are not told apart.
  void AucOfLogits(std::string_view name, std::span<const float> logits,
                   std::span<const bool> labels);
  void AucOfLogits(std::string_view name, std::span<const float> logits,
                   std::span<const uint8_t> labels);
  /// Gives out what the model says about the records of a predict dataset; call it in the loop. The
  /// outputs of a shard become one object at `output` of the dataset, whose name has the number of
  /// the shard: in the order of these numbers, outputs are in the order of the records. The object
  /// appears once and as a whole, before the shard is done, and is never replaced, whatever is
  /// killed. Calls append: bytes as they are, so add line ends yourself.
  ///
  /// If no minibatch of a shard calls Output, and not all of its records are rejected, the shard
  /// fails; no bytes are an output, too. It also fails with more than 256 MiB. In other datasets,
  /// in `prepare` or after Commit, the session fails.
  void Output(std::string_view bytes);
  /// The same with rows of numbers, `values: [n, columns] float32 row-major`: the object is a NumPy
  /// array (.npy) of all rows of the shard. `columns` is the same in all calls. A shard has outputs
  /// of one kind: bytes, rows, or pieces of one format.
  void Output(std::span<const float> values, size_t columns);
  /// The same with a piece of an object that the trainer joins itself, such as a Parquet file.
  void Output(std::string_view piece, const ObjectFormat& format);

  /// Reports that records()[record] cannot be used, in `prepare` or in the loop. The record is
  /// counted (once per epoch, even if it is rejected twice), and the job shows its file and line,
  /// or its topic, partition and offset. The job fails if more than
  /// spec.training.rejectedRecordsMax records are rejected. If the dataset has a dead-letter topic,
  /// the record is also written there before its shard is done. Reject does not change records():
  /// leave the record out of the gradients yourself. If there is no such record, the session fails.
  void Reject(size_t record, std::string_view reason);

  explicit Minibatch(internal::MinibatchImpl* impl) : impl_(impl) {}

 private:
  internal::MinibatchImpl* impl_;
};

/// The SDK calls it once for each minibatch, up to spec.training.prefetchMinibatches minibatches
/// before the loop gets there, on the loop's thread. It may call everything but Push: usually Need
/// and Reject. A Pull there waits for the servers, and so holds up the loop.
using Prepare = std::function<void(Minibatch&)>;

}  // namespace muster
