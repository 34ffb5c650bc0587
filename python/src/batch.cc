#include "python/src/batch.h"

#include <utility>

#include "python/src/arguments.h"
#include "python/src/errors.h"
#include "python/src/loop.h"

namespace muster::python {
namespace {

/// Columns for Arrow: a dict, or what gives itself out as Arrow's streams or arrays do.
bool HasColumns(nb::handle value) {
  return nb::isinstance<nb::dict>(value) || nb::hasattr(value, "__arrow_c_stream__") ||
         nb::hasattr(value, "__arrow_c_array__");
}

Shape RowsShape(const Given<uint64_t>& keys, const PyTable& table) {
  Shape shape = keys.shape;
  shape.push_back(table.table.width());
  return shape;
}

}  // namespace

Batch::Batch(std::shared_ptr<Loop> loop, Minibatch* minibatch)
    : loop_(std::move(loop)),
      minibatch_(minibatch),
      records_owner_(minibatch->records_owner()),
      records_(minibatch->records()),
      record_numbers_(minibatch->record_numbers()),
      nominal_size_(minibatch->nominal_size()),
      evaluate_(minibatch->evaluate()),
      predict_(minibatch->predict()),
      dataset_(minibatch->dataset()),
      epoch_(minibatch->epoch()),
      seed_(minibatch->seed()),
      step_(minibatch->step()),
      shard_(loop_->source().id()),
      header_(loop_->source().header()) {}

Minibatch& Batch::Use() const {
  loop_->RequireThread();
  if (minibatch_ == nullptr) {
    Raise(Status::Code::kFailedPrecondition,
          "the loop has left this minibatch: what it needs of the job must be asked before; arrays "
          "and records that it gave stay valid");
  }
  return *minibatch_;
}

template <typename Call>
void Batch::Wait(Call&& call) {
  const Loop::InUse in_use(loop_.get());
  loop_->session().Wait(std::forward<Call>(call));
}

void Batch::Run(std::vector<nb::object>& calls) {
  const std::vector<nb::object> own = std::exchange(calls, {});
  try {
    for (const nb::object& call : own) call();
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_Exception)) loop_->Fail(Describe(error.value()));
    throw;
  }
}

void Batch::Begin() {
  begun_ = true;
  Run(on_begin_);
}

void Batch::BeforeCommit() {
  committed_ = true;
  Run(on_commit_);
}

void Batch::Leave() {
  minibatch_ = nullptr;
  on_begin_.clear();
  on_commit_.clear();
}

void Batch::OnBegin(nb::object call) {
  Use();
  if (!begun_) return on_begin_.push_back(std::move(call));
  call();
}

void Batch::OnCommit(nb::object call) {
  Use();
  if (committed_) {
    Raise(Status::Code::kFailedPrecondition,
          "this minibatch is committed: what it needs of the job must be asked before");
  }
  on_commit_.push_back(std::move(call));
}

void Batch::RequireSession(const PySession* session, const std::string& name) const {
  if (session == &loop_->session()) return;
  const std::string what =
      "table \"" + name + "\" is of another session: register it with this one";
  throw nb::value_error(what.c_str());
}

nb::object Batch::Records() {
  if (!records_list_) {
    nb::list list;
    for (const std::string_view record : records_) {
      list.append(nb::bytes(record.data(), record.size()));
    }
    records_list_ = std::move(list);
  }
  return records_list_;
}

nb::object Batch::RecordNumbers() {
  if (!numbers_array_) numbers_array_ = ArrayOf(record_numbers_, records_owner_);
  return numbers_array_;
}

void Batch::Need(const PyTable& table, nb::handle keys) {
  const Given<uint64_t> given = KeysOf(keys);
  RequireSession(table.session.get(), table.name);
  Use().Need(table.table, given.values);
  loop_->session().Check();
}

void Batch::NeedDense(const PyDense& tensor) {
  RequireSession(tensor.session.get(), tensor.name);
  Use().Need(tensor.tensor);
  loop_->session().Check();
}

nb::object Batch::Pull(const PyTable& table, nb::handle keys) {
  const Given<uint64_t> given = KeysOf(keys);
  RequireSession(table.session.get(), table.name);
  Minibatch& minibatch = Use();
  Rows rows(nullptr, 0, 0);
  Wait([&] { rows = minibatch.Pull(table.table, given.values); });
  return ArrayOf(rows, RowsShape(given, table));
}

nb::object Batch::PullDense(const PyDense& tensor) {
  RequireSession(tensor.session.get(), tensor.name);
  Minibatch& minibatch = Use();
  Rows rows(nullptr, 0, 0);
  Wait([&] { rows = minibatch.Pull(tensor.tensor); });
  return ArrayOf(rows, tensor.shape);
}

void Batch::Push(const PyTable& table, nb::handle keys, nb::handle gradients) {
  const Given<uint64_t> rows = KeysOf(keys);
  const Given<float> given = FloatsOf(gradients, "gradients", RowsShape(rows, table),
                                      "the shape of keys and the table's dim");
  RequireSession(table.session.get(), table.name);
  Minibatch& minibatch = Use();
  Wait([&] { minibatch.Push(table.table, rows.values, given.values); });
}

void Batch::PushDense(const PyDense& tensor, nb::handle gradient) {
  const Given<float> given =
      FloatsOf(gradient, "gradient", tensor.shape, "the shape of the tensor");
  RequireSession(tensor.session.get(), tensor.name);
  Minibatch& minibatch = Use();
  Wait([&] { minibatch.Push(tensor.tensor, given.values); });
}

void Batch::Commit() {
  Use();
  BeforeCommit();
  Minibatch& minibatch = Use();
  Wait([&] { minibatch.Commit(); });
}

void Batch::Metric(const std::string& name, double value, double weight) {
  Use().Metric(name, value, weight);
  loop_->session().Check();
}

void Batch::Auc(const std::string& name, nb::handle scores, nb::handle labels) {
  const Given<float> given = ScoresOf(scores, "scores");
  const Given<uint8_t> known = LabelsOf(labels, given.values.size(), "scores");
  Use().Auc(name, given.values, known.values);
  loop_->session().Check();
}

void Batch::AucOfLogits(const std::string& name, nb::handle logits, nb::handle labels) {
  const Given<float> given = ScoresOf(logits, "logits");
  const Given<uint8_t> known = LabelsOf(labels, given.values.size(), "logits");
  Use().AucOfLogits(name, given.values, known.values);
  loop_->session().Check();
}

void Batch::Output(nb::handle value) {
  nb::bytes bytes;
  if (nb::try_cast(value, bytes, /*convert=*/false)) {
    Use().Output(std::string_view(bytes.c_str(), bytes.size()));
  } else if (HasColumns(value)) {
    const auto piece =
        nb::cast<nb::bytes>(nb::module_::import_("muster._outputs").attr("to_piece")(value));
    const auto join = [loop = loop_.get()](std::span<const std::string_view> pieces) {
      return loop->JoinOutputs(pieces);
    };
    Use().Output(std::string_view(piece.c_str(), piece.size()), {".parquet", join});
  } else {
    const Given<float> given = RowsOf(value, "value");
    Use().Output(given.values, given.shape.size() == 2 ? given.shape[1] : 1);
  }
  loop_->session().Check();
}

void Batch::Reject(size_t record, const std::string& reason) {
  Minibatch& minibatch = Use();
  if (record >= records_.size()) {
    const std::string what = "record " + std::to_string(record) + ": the minibatch has " +
                             std::to_string(records_.size());
    throw nb::index_error(what.c_str());
  }
  minibatch.Reject(record, reason);
  loop_->session().Check();
}

void Batch::Fail(const std::string& reason) {
  Use();
  loop_->Fail(reason);
  loop_->session().Check();
}

void Batch::Exit(nb::handle type, nb::handle error) {
  if (type.is_none()) return Commit();
  if (minibatch_ == nullptr) return;
  loop_->RequireThread();
  on_commit_.clear();
  if (PyErr_GivenExceptionMatches(type.ptr(), PyExc_Exception) != 0) {
    loop_->Fail(Describe(error));
  } else {
    loop_->Close();
  }
}

}  // namespace muster::python
