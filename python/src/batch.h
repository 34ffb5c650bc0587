#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/muster.h"
#include "python/src/tables.h"

namespace muster::python {

class Loop;

/// A muster::Minibatch for Python. Requires the GIL, which every call that may wait releases
/// meanwhile. Its records, and what does not change, can be read for ever; all other members raise
/// when the loop has left the minibatch, or on another thread.
class Batch {
 public:
  Batch(std::shared_ptr<Loop> loop, Minibatch* minibatch);
  /// The loop comes to the minibatch: calls what OnBegin was given.
  void Begin();
  /// Calls what OnCommit was given, each once. If one raises, the shard fails.
  void BeforeCommit();
  /// The loop leaves the minibatch.
  void Leave();

  /// A list of bytes, made when it is first asked for.
  nb::object Records();
  /// An array of int64 over the library's memory, made when it is first asked for.
  nb::object RecordNumbers();
  size_t size() const { return records_.size(); }
  size_t nominal_size() const { return nominal_size_; }
  bool evaluate() const { return evaluate_; }
  bool predict() const { return predict_; }
  const std::string& dataset() const { return dataset_; }
  uint32_t epoch() const { return epoch_; }
  uint64_t seed() const { return seed_; }
  uint64_t step() const { return step_; }
  const std::string& shard() const { return shard_; }
  nb::bytes header() const { return nb::bytes(header_.data(), header_.size()); }

  void Need(const PyTable& table, nb::handle keys);
  void NeedDense(const PyDense& tensor);
  nb::object Pull(const PyTable& table, nb::handle keys);
  nb::object PullDense(const PyDense& tensor);
  void Push(const PyTable& table, nb::handle keys, nb::handle gradients);
  void PushDense(const PyDense& tensor, nb::handle gradient);
  void Commit();
  /// At once if the loop is at the minibatch already.
  void OnBegin(nb::object call);
  void OnCommit(nb::object call);
  void Metric(const std::string& name, double value, double weight);
  void Auc(const std::string& name, nb::handle scores, nb::handle labels);
  void AucOfLogits(const std::string& name, nb::handle logits, nb::handle labels);
  void Output(nb::handle value);
  void Reject(size_t record, const std::string& reason);
  void Fail(const std::string& reason);
  /// Leaves a `with` block: commits, fails the shard, or (KeyboardInterrupt and the like) hands the
  /// shard back.
  void Exit(nb::handle type, nb::handle error);

 private:
  /// The minibatch; raises if it cannot be used now.
  Minibatch& Use() const;
  /// Calls `call`, which may wait and uses the minibatch, as PySession::Wait does.
  template <typename Call>
  void Wait(Call&& call);
  /// Raises if the table is not of this session.
  void RequireSession(const PySession* session, const std::string& name) const;
  void Run(std::vector<nb::object>& calls);

  const std::shared_ptr<Loop> loop_;
  Minibatch* minibatch_;
  const std::shared_ptr<const void> records_owner_;
  const std::span<const std::string_view> records_;
  const std::span<const int64_t> record_numbers_;
  const size_t nominal_size_;
  const bool evaluate_, predict_;
  const std::string dataset_;
  const uint32_t epoch_;
  const uint64_t seed_, step_;
  const std::string shard_, header_;
  nb::object records_list_, numbers_array_;
  bool begun_ = false, committed_ = false;
  // They may refer to this minibatch, and so they go when the loop leaves it.
  std::vector<nb::object> on_begin_, on_commit_;
};

}  // namespace muster::python
