#include "worker_sdk/session/minibatch_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "proto/wire/frame.h"
#include "worker_sdk/session/minibatch_loop.h"
#include "worker_sdk/session/table_options.h"

namespace muster::internal {
namespace {

bool IsDense(const TableSpec& table) {
  return !table.shape.empty();
}

}  // namespace

MinibatchImpl::MinibatchImpl(MinibatchLoop* loop, MinibatchIndex index, size_t first_record,
                             std::span<const std::string_view> records)
    : loop_(loop),
      session_(&loop->session()),
      index_(index),
      first_record_(first_record),
      records_(records) {}

MinibatchImpl::~MinibatchImpl() {
  for (const PullOp& pull : pulls_) {
    if (pull.batch && !pull.waited) session_->CancelPull(pull.id);
  }
}

uint64_t MinibatchImpl::floats_asked() const {
  uint64_t floats = 0;
  for (const PullOp& pull : pulls_) {
    if (pull.batch) floats += pull.batch->plan.value_count;
  }
  return floats;
}

const TableSpec* MinibatchImpl::TableFor(TableId id, std::string_view call, TableKind kind) {
  if (!loop_->owner().may_use_tables()) {
    session_->ProgramError(fmt::format(
        "{} in a step of LocalSGD or DiLoCo: members train on different weights in a step, so what "
        "they push to tables could not be repeated by another member",
        call));
    return nullptr;
  }
  const bool dense = kind == TableKind::kDense;
  const TableSpec* table = loop_->FindTable(id);
  if (table == nullptr || table->shape.empty() != dense) return table;
  session_->ProgramError(
      fmt::format("{} of table \"{}\": the table is {}, the call is for a {} one", call,
                  table->name, dense ? "sparse" : "dense", dense ? "dense" : "sparse"));
  return nullptr;
}

size_t MinibatchImpl::AddKnown(TableId table, std::shared_ptr<const sdk::KeySet> keys) {
  const size_t known = known_.size();
  known_.push_back({.table = table, .keys = std::move(keys), .before = NewestOf(table)});
  if (newest_of_.size() <= table.value()) newest_of_.resize(table.value() + 1, kNone);
  newest_of_[table.value()] = known;
  return known;
}

size_t MinibatchImpl::KeysOf(TableId table, std::span<const uint64_t> keys) {
  for (size_t known = NewestOf(table); known != kNone; known = known_[known].before) {
    if (std::ranges::equal(known_[known].keys->original, keys)) return known;
  }
  return AddKnown(table, sdk::MakePooled<const sdk::KeySet>(sdk::MakeKeySet(keys)));
}

size_t MinibatchImpl::BlocksOf(const TableSpec& table) {
  if (const size_t known = NewestOf(table.id); known != kNone) return known;
  auto fresh = sdk::MakePooled<sdk::KeySet>();
  fresh->unique.resize(DenseBlockCount(table));
  std::iota(fresh->unique.begin(), fresh->unique.end(), uint64_t{0});
  fresh->original = fresh->unique;
  return AddKnown(table.id, std::move(fresh));
}

void MinibatchImpl::Need(TableId table, std::span<const uint64_t> keys) {
  const TableSpec* spec = TableFor(table, "Need", TableKind::kSparse);
  if (spec != nullptr) AddNeed(spec, KeysOf(table, keys));
}

void MinibatchImpl::NeedDense(TableId table) {
  const TableSpec* spec = TableFor(table, "Need", TableKind::kDense);
  if (spec != nullptr) AddNeed(spec, BlocksOf(*spec));
}

bool MinibatchImpl::Asks(const PullOp& pull, TableId table) const {
  for (size_t known = NewestOf(table); known != kNone; known = known_[known].before) {
    if (known_[known].pull == &pull) return true;
  }
  return false;
}

void MinibatchImpl::AddNeed(const TableSpec* table, size_t known) {
  if (known_[known].pull != nullptr) return;
  PullOp* open = nullptr;
  // Those that have not started are the last ones.
  for (auto pull = pulls_.rbegin(); pull != pulls_.rend() && !pull->batch; ++pull) {
    if (Asks(*pull, table->id)) continue;
    open = &*pull;
    break;
  }
  if (open == nullptr) open = &pulls_.emplace_back();
  open->tables.push_back(table);
  open->keys.push_back(known_[known].keys);
  open->known.push_back(known);
  known_[known].pull = open;
  if (!preparing_) StartPulls();
}

void MinibatchImpl::EndPrepare() {
  preparing_ = false;
  StartPulls();
}

void MinibatchImpl::DenseTablesLast(PullOp* pull) {
  const auto dense = [](const TableSpec* table) { return IsDense(*table); };
  if (std::ranges::is_sorted(pull->tables, {}, dense)) return;
  std::vector<size_t> order(pull->tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t t) { return IsDense(*pull->tables[t]); });
  const PullOp before = *pull;
  for (size_t t = 0; t < order.size(); ++t) {
    pull->tables[t] = before.tables[order[t]];
    pull->keys[t] = before.keys[order[t]];
    pull->known[t] = before.known[order[t]];
  }
}

void MinibatchImpl::StartPulls() {
  auto first = pulls_.end();
  while (first != pulls_.begin() && !std::prev(first)->batch) --first;
  for (auto pull = first; pull != pulls_.end(); ++pull) {
    DenseTablesLast(&*pull);
    sdk::PooledVector<sdk::TableKeys> tables;
    for (size_t t = 0; t < pull->tables.size(); ++t) {
      const TableSpec& table = *pull->tables[t];
      tables.push_back({table.id, table.dim, pull->keys[t]->unique, IsDense(table)});
      known_[pull->known[t]].number = t;
    }
    pull->batch = sdk::MakePull(tables, pull->keys, *session_->sending_order());
    pull->id = session_->StartPull(pull->batch);
  }
}

std::shared_ptr<const float[]> MinibatchImpl::NewZeros(size_t floats) {
  return zeros_.emplace_back(std::make_shared<float[]>(std::max<size_t>(floats, 1)));
}

std::shared_ptr<const float[]> MinibatchImpl::TakeRows(const TableSpec* table, size_t known,
                                                       size_t floats) {
  AddNeed(table, known);
  StartPulls();
  PullOp& pull = *known_[known].pull;
  if (!pull.waited) {
    pull.rows = session_->WaitPull(loop_->run(), pull.id);
    pull.waited = true;
    pull.given.resize(pull.keys.size());
    pull.not_given = pull.keys.size();
  }
  std::shared_ptr<const float[]>& given = pull.given[known_[known].number];
  if (given == nullptr && pull.rows) {
    given = TableOf(&pull, known_[known].number);
    // All rows are in `given` now.
    if (--pull.not_given == 0) pull.rows.reset();
  }
  return given != nullptr ? given : NewZeros(floats);
}

std::shared_ptr<const float[]> MinibatchImpl::TableOf(PullOp* pull, size_t number) {
  const TableSpec& table = *pull->tables[number];
  if (IsDense(table)) {
    const std::shared_ptr<const sdk::Tensor>& tensor = pull->rows->tensors[number];
    return {tensor, tensor->values.get()};
  }
  // Nothing else reads the outputs of a finished pull.
  return sdk::TakeOutput(&pull->batch->outputs[number], table.dim);
}

Rows MinibatchImpl::ZeroRows(size_t num_keys, uint64_t width) {
  std::shared_ptr<const float[]> zeros = NewZeros(num_keys * width);
  const float* const values = zeros.get();
  return Rows(values, num_keys, width, std::move(zeros));
}

Rows MinibatchImpl::Pull(TableId table, uint64_t width, std::span<const uint64_t> keys) {
  const TableSpec* spec = TableFor(table, "Pull", TableKind::kSparse);
  if (spec == nullptr) return ZeroRows(keys.size(), width);
  std::shared_ptr<const float[]> rows = TakeRows(spec, KeysOf(table, keys), keys.size() * width);
  const float* const values = rows.get();
  return Rows(values, keys.size(), width, std::move(rows));
}

Rows MinibatchImpl::PullDense(TableId table, uint64_t size) {
  const TableSpec* spec = TableFor(table, "Pull", TableKind::kDense);
  if (spec == nullptr) return ZeroRows(1, size);
  std::shared_ptr<const float[]> rows = TakeRows(spec, BlocksOf(*spec), size);
  const float* const values = rows.get();
  return Rows(values, 1, size, std::move(rows));
}

bool MinibatchImpl::PushAllowed(const TableSpec& table) {
  std::string why;
  if (loop_->evaluate()) {
    why = fmt::format(
        "Push to table \"{}\" in shard {} of the evaluate dataset \"{}\": evaluation "
        "changes no rows; check batch.evaluate() before",
        table.name, loop_->id(), loop_->work().dataset_name);
  } else if (committed_) {
    why =
        fmt::format("Push to table \"{}\" after Commit of the minibatch: push before", table.name);
  } else if (preparing_) {
    why = fmt::format("Push to table \"{}\" in `prepare`: it is for Need alone", table.name);
  }
  if (why.empty()) return true;
  session_->ProgramError(std::move(why));
  return false;
}

std::pair<sdk::PlannedGradients*, size_t> MinibatchImpl::PlanFor(const TableSpec& table,
                                                                 size_t known) {
  KnownKeys& its = known_[known];
  if (its.gradients == kNone && its.pull != nullptr && its.pull->batch) {
    PullOp& pull = *its.pull;
    if (pull.gradients == kNone) {
      pull.gradients = pushed_.size();
      pushed_.emplace_back(pull.batch, pull.keys);
    }
    return {&pushed_[pull.gradients], its.number};
  }
  if (its.gradients == kNone) {
    const sdk::TableKeys rows{table.id, table.dim, its.keys->unique};
    auto batch = sdk::MakePooled<sdk::RowBatch>();
    batch->plan = sdk::PlanRows(std::span(&rows, 1), *session_->sending_order());
    its.gradients = pushed_.size();
    pushed_.emplace_back(std::move(batch), sdk::PlannedGradients::Keys{its.keys});
  }
  return {&pushed_[its.gradients], 0};
}

void MinibatchImpl::BeginPush(uint64_t floats) {
  if (!pushed_.empty()) return;
  session_->AwaitRoomForGradients(loop_->run(), std::max(floats, floats_asked()));
}

void MinibatchImpl::Push(TableId table, std::span<const uint64_t> keys,
                         std::span<const float> gradients) {
  const TableSpec* spec = TableFor(table, "Push", TableKind::kSparse);
  if (spec == nullptr || !PushAllowed(*spec)) return;
  if (gradients.size() != keys.size() * spec->dim) {
    session_->ProgramError(fmt::format(
        "Push to table \"{}\": {} gradients for {} keys of {} columns; [{}, {}] = {} are "
        "needed",
        spec->name, gradients.size(), keys.size(), spec->dim, keys.size(), spec->dim,
        keys.size() * spec->dim));
    return;
  }
  if (keys.empty()) return;
  BeginPush(gradients.size());
  const auto [planned, number] = PlanFor(*spec, KeysOf(table, keys));
  planned->Add(number, gradients);
}

void MinibatchImpl::PushDense(TableId table, std::span<const float> gradient) {
  const TableSpec* spec = TableFor(table, "Push", TableKind::kDense);
  if (spec == nullptr || !PushAllowed(*spec)) return;
  if (gradient.size() != sdk::ElementCount(*spec)) {
    session_->ProgramError(fmt::format("Push to table \"{}\": {} gradients for {} elements",
                                       spec->name, gradient.size(), sdk::ElementCount(*spec)));
    return;
  }
  BeginPush(gradient.size());
  const auto [planned, number] = PlanFor(*spec, BlocksOf(*spec));
  planned->AddDense(number, gradient);
}

bool MinibatchImpl::Sendable(const sdk::PlannedGradients& gradients) {
  const std::span<const float> values = gradients.values();
  if (!gradients.finite()) {
    const size_t at = sdk::FirstNonFinite(values).value();
    const sdk::PlannedGradients::Place bad = gradients.PlaceOf(at);
    loop_->Fail(fmt::format(
        "a gradient for table \"{}\" is {} (key {}, column {}, minibatch {} of the shard): "
        "nothing of this minibatch was sent; look for a division by zero, a logarithm of zero or "
        "a learning rate that is too high",
        session_->FindTable(bad.table)->name, values[at], bad.key, bad.column, index_.value()));
    return false;
  }
  const wire::Encoding encoding = session_->encoding();
  const size_t at = wire::FirstUnencodable(values, encoding);
  if (at == values.size()) return true;
  const sdk::PlannedGradients::Place bad = gradients.PlaceOf(at);
  loop_->Fail(fmt::format(
      "a gradient for table \"{}\" is {} (key {}, column {}, minibatch {} of the shard), but {}, "
      "the job's spec.training.wireEncoding, ends at {}: nothing of this minibatch was sent; "
      "choose "
      "{}, or scale the gradients down",
      session_->FindTable(bad.table)->name, values[at], bad.key, bad.column, index_.value(),
      wire::NameOf(encoding), wire::LargestFinite(encoding),
      encoding == wire::Encoding::kFloat16 ? "float32 or bfloat16" : "float32"));
  return false;
}

void MinibatchImpl::Commit() {
  if (committed_ || preparing_) return;
  committed_ = true;
  if (loop_->left()) return;
  LoopOwner& owner = loop_->owner();
  if (pushed_.empty() && !owner.PushesNothing(*this)) return;
  sdk::PlannedGradients gradients =
      pushed_.size() == 1 && pushed_.front().complete()
          ? std::move(pushed_.front())
          : sdk::PlannedGradients::Merge(pushed_, *session_->sending_order());
  if (!Sendable(gradients)) return;
  std::shared_ptr<const sdk::RowBatch> batch = gradients.Take();
  for (const sdk::PlanPart& part : batch->plan.parts) {
    if (part.key_count <= wire::kKeysMax && part.value_count * 4 <= wire::kValueBytesMax) continue;
    const sdk::PlanGroup& group = batch->plan.groups[part.group_begin];
    return loop_->Fail(
        fmt::format("one partition's part of the minibatch has {} rows ({} of table \"{}\"), more "
                    "than can be sent "
                    "at once: make the minibatches smaller or the job's partitions more",
                    part.key_count, group.keys, session_->FindTable(group.table)->name));
  }
  owner.Push(*this, std::move(batch));
}

}  // namespace muster::internal
