#pragma once

#include <any>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/session.h"
#include "proto/messages/table_spec.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/key_set.h"
#include "worker_sdk/core/planned_gradients.h"
#include "worker_sdk/core/row_plan.h"
#include "worker_sdk/core/shard_output.h"
#include "worker_sdk/session/loop_session.h"

namespace muster::internal {

class MinibatchLoop;

/// What a trainer gives to the AUC.
enum class ScoreKind : uint8_t { kProbability, kLogit };

/// One minibatch in a loop's hands: its pulls, the gradients pushed so far, its commit. Belongs to
/// the loop's thread.
class MinibatchImpl {
 public:
  /// `loop` owns it.
  MinibatchImpl(MinibatchLoop* loop, MinibatchIndex index, size_t first_record,
                std::span<const std::string_view> records);
  /// Cancels the pulls that were not waited for.
  ~MinibatchImpl();
  MinibatchImpl(const MinibatchImpl&) = delete;
  MinibatchImpl& operator=(const MinibatchImpl&) = delete;

  /// Between these two, Need only collects requests; one pull for all of them starts at the end.
  void BeginPrepare() { preparing_ = true; }
  void EndPrepare();

  void Need(TableId table, std::span<const uint64_t> keys);
  void NeedDense(TableId table);
  Rows Pull(TableId table, uint64_t width, std::span<const uint64_t> keys);
  Rows PullDense(TableId table, uint64_t size);
  /// What Pull returns if nothing can arrive.
  Rows ZeroRows(size_t num_keys, uint64_t width);
  void Push(TableId table, std::span<const uint64_t> keys, std::span<const float> gradients);
  void PushDense(TableId table, std::span<const float> gradient);
  void Commit();
  void Metric(std::string_view name, double value, double weight);
  void Auc(std::string_view name, ScoreKind kind, std::span<const float> scores,
           std::span<const uint8_t> labels);
  void Output(std::string_view bytes);
  void Output(std::span<const float> values, size_t columns);
  void Output(std::string_view piece, const ObjectFormat& format);
  void Reject(size_t record, std::string_view reason);
  TopicRecord RecordOfTopic(size_t record);
  std::vector<TopicHeader> HeadersOfTopic(size_t record);

  MinibatchLoop& loop() const { return *loop_; }
  MinibatchIndex index() const { return index_; }
  std::span<const std::string_view> records() const { return records_; }
  std::span<const int64_t> record_numbers() const;
  std::shared_ptr<const void> records_owner() const;
  size_t nominal_size() const;
  std::any& user_data() { return user_data_; }
  Minibatch& handle() { return handle_; }
  bool committed() const { return committed_; }
  /// Floats of the rows that were requested so far.
  uint64_t floats_asked() const;
  /// The timestamps of a topic's records that have one, since the Unix epoch.
  sdk::PooledVector<std::chrono::milliseconds> Timestamps() const;

 private:
  static constexpr size_t kNone = SIZE_MAX;
  /// One request for rows. It names each of its tables once.
  struct PullOp {
    sdk::PooledVector<const TableSpec*> tables;
    sdk::PooledVector<std::shared_ptr<const sdk::KeySet>> keys;
    sdk::PooledVector<size_t> known;       // the same keys in known_
    std::shared_ptr<sdk::RowBatch> batch;  // null until the pull has started
    sdk::DeliveryId id;
    bool waited = false;
    std::optional<sdk::PullRows> rows;  // until the trainer has all; none if the lease is lost
    // By table: the rows that the trainer got, or null.
    sdk::PooledVector<std::shared_ptr<const float[]>> given;
    size_t not_given = 0;      // how many of these are null
    size_t gradients = kNone;  // the gradients of its plan in pushed_
  };
  /// The keys of an earlier call. Need, Pull and Push of the same keys search for repeats only
  /// once, and find at once what became of them, however many tables there are.
  struct KnownKeys {
    TableId table;
    std::shared_ptr<const sdk::KeySet> keys;
    size_t before = kNone;     // in known_: the last ones of the table before them
    PullOp* pull = nullptr;    // which asks for them
    size_t number = 0;         // the table's in that pull, from its start
    size_t gradients = kNone;  // in pushed_, with a plan of their own
  };
  /// Positions in known_.
  size_t KeysOf(TableId table, std::span<const uint64_t> keys);
  size_t BlocksOf(const TableSpec& table);
  size_t NewestOf(TableId table) const {
    return table.value() < newest_of_.size() ? newest_of_[table.value()] : kNone;
  }
  size_t AddKnown(TableId table, std::shared_ptr<const sdk::KeySet> keys);
  bool Asks(const PullOp& pull, TableId table) const;
  void AddNeed(const TableSpec* table, size_t known);
  void StartPulls();
  /// Puts the tables into the order that PlanRows requires.
  static void DenseTablesLast(PullOp* pull);
  /// Waits for the rows of known keys, and returns their `floats` floats in the order of the keys.
  /// They are in memory of this minibatch, which is the same for every call with these keys. If the
  /// lease is lost, they are zeros.
  std::shared_ptr<const float[]> TakeRows(const TableSpec* table, size_t known, size_t floats);
  /// The rows of one table of a pull that has been answered. Call it once for each table.
  static std::shared_ptr<const float[]> TableOf(PullOp* pull, size_t number);
  std::shared_ptr<const float[]> NewZeros(size_t floats);
  enum class TableKind { kSparse, kDense };
  /// The table that `call` uses. If it is of the other kind, the result is null, and `call` is a
  /// program error.
  const TableSpec* TableFor(TableId id, std::string_view call, TableKind kind);
  bool PushAllowed(const TableSpec& table);
  /// Where gradients of known keys are added: the gradients of a plan, and the number of the table
  /// there.
  std::pair<sdk::PlannedGradients*, size_t> PlanFor(const TableSpec& table, size_t known);
  /// Call it before gradients are added. The first call waits until there is room for them.
  void BeginPush(uint64_t floats);
  /// True if the gradients can be sent. If not, the run fails, and its reason names the key and the
  /// column.
  bool Sendable(const sdk::PlannedGradients& gradients);
  /// The outputs of the shard; null if it may have none now, which is a program error.
  sdk::ShardOutput* OutputAllowed();
  enum class MetricKind : uint8_t { kMean, kAuc };
  bool MetricAllowed(std::string_view name, MetricKind kind);
  /// The records of the topic. If the dataset is no topic, or the minibatch has no such record, the
  /// result is null, and `call` is a program error.
  const sdk::TopicRecords* TopicOf(size_t record, std::string_view call);

  MinibatchLoop* const loop_;
  LoopSession* const session_;
  MinibatchIndex index_;
  size_t first_record_;
  std::span<const std::string_view> records_;
  Minibatch handle_{this};
  std::any user_data_;
  bool preparing_ = false;
  bool committed_ = false;
  sdk::PooledVector<KnownKeys> known_;
  sdk::PooledVector<size_t> newest_of_;  // by table: in known_, or kNone
  std::list<PullOp, sdk::PoolAllocator<PullOp>> pulls_;
  // Rows that did not arrive. Not in kept memory: a forked child may not take its locks.
  std::vector<std::shared_ptr<const float[]>> zeros_;
  // The pushed gradients. Those of a pull's keys use its plan, and others have a plan of their own.
  sdk::PooledVector<sdk::PlannedGradients> pushed_;
  std::set<size_t> rejected_;
};

}  // namespace muster::internal
