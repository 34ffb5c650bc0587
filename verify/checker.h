#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "verify/workload/history.h"

namespace muster::verify {

/// The training input: the records 0, 1, ..., records - 1, each once per epoch.
struct Workload {
  uint64_t records = 0;
  uint32_t epochs = 0;  // at most kEpochsMax
};

/// The minibatches that all worker processes reported to have begun. A value; not thread-safe.
class AttemptLog {
 public:
  explicit AttemptLog(const Workload& workload);
  void Add(const Attempt& attempt);

  /// Record trainings begun, including repeats.
  uint64_t attempts() const { return attempts_; }
  /// Those of them that are not the first of their record and epoch.
  uint64_t redelivered() const { return redelivered_; }
  /// Minibatches begun beyond the first time.
  uint64_t redelivered_minibatches() const { return redelivered_minibatches_; }
  /// Records of an epoch that some worker began.
  uint64_t begun(uint32_t epoch) const { return begun_[epoch]; }
  bool began(uint64_t id, uint32_t epoch) const { return times_[Place(id, epoch)] > 0; }
  /// Contradictions: a minibatch had other records when it ran again, a record is in two
  /// minibatches
  /// of an epoch, a record is not in the input. At most the first kContradictionsMax.
  const std::vector<std::string>& contradictions() const { return contradictions_; }
  static constexpr size_t kContradictionsMax = 10;

 private:
  struct Minibatch {
    uint64_t records_hash = 0;
    uint64_t records = 0;
  };
  size_t Place(uint64_t id, uint32_t epoch) const { return epoch * workload_.records + id; }
  void Contradict(const Attempt& attempt, const std::string& what);

  Workload workload_;
  std::vector<uint32_t> times_;                                      // by Place
  std::map<std::pair<ShardName, uint64_t>, Minibatch> minibatches_;  // by shard and step
  std::vector<uint64_t> begun_;
  uint64_t attempts_ = 0;
  uint64_t redelivered_ = 0;
  uint64_t redelivered_minibatches_ = 0;
  std::vector<std::string> contradictions_;
};

/// The ledger at the end of the job.
struct Ledger {
  struct Epoch {
    uint64_t expected = 0;   // records
    uint64_t committed = 0;  // records
    double mean_id = 0;      // the metric `id`
  };
  std::vector<Epoch> epochs;
  uint64_t redelivered_minibatches = 0;
  /// The tolerance of `redelivered_minibatches`. The master learns of minibatches by heartbeat, and
  /// a
  /// kill may lose its last second of counts.
  uint64_t redelivered_tolerance = 0;
  /// If there are more re-deliveries than this, the ledger must have counted at least one.
  uint64_t redelivered_unseen_max = 0;
};

/// A sparse table as exported: values [keys.size(), dim] float32 row-major. Views.
struct SparseRows {
  std::span<const uint64_t> keys;
  std::span<const float> values;
};
struct Weights {
  SparseRows ids;
  SparseRows buckets;
  SparseRows wide;
  std::span<const float> totals;
};

/// One row that is wrong.
struct WrongRow {
  std::string table;
  uint64_t key = 0;
  std::string expected;
  std::string found;
};

/// An *effect* is what one record adds to one table in one epoch.
struct Verdict {
  uint64_t attempts = 0;      // record trainings that workers began, repeats included
  uint64_t acknowledged = 0;  // record trainings that the ledger calls committed
  uint64_t redelivered = 0;   // attempts beyond the first of their record and epoch
  uint64_t redelivered_minibatches = 0;

  uint64_t lost = 0;        // effects: acknowledged, not in the weights
  uint64_t unexpected = 0;  // effects: in the weights, never attempted, or not of the input
  uint64_t duplicated = 0;  // effects beyond the first
  uint64_t wrong_rows = 0;  // rows that are not what they must be, for whatever reason
  uint64_t rows = 0;        // rows compared
  std::vector<WrongRow> samples;
  /// Where ledger, histories and input contradict each other.
  std::vector<std::string> disagreements;

  static constexpr size_t kSamplesMax = 10;
  /// True if nothing is lost, unexpected, duplicated or wrong, and nothing contradicts.
  bool ok() const;
};

/// Compares the weights of a job that succeeded with the weights that its input must give, and the
/// ledger with the workers' histories. Pure.
Verdict Check(const Workload& workload, const AttemptLog& attempts, const Ledger& ledger,
              const Weights& weights);

}  // namespace muster::verify
