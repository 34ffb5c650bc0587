#include "ps/engine/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster::ps {
namespace {

/// The tables, sorted by id. Ids begin at 1, so a table is usually at the position that its id
/// gives.
class TableList {
 public:
  Table* Find(TableId id) const {
    const size_t guess = id.value() - 1;
    if (guess < tables_.size() && tables_[guess].id == id) return tables_[guess].table.get();
    const auto at = std::ranges::lower_bound(tables_, id, {}, &Item::id);
    return at != tables_.end() && at->id == id ? at->table.get() : nullptr;
  }
  /// Returns false if there is a table with this id.
  bool Add(std::unique_ptr<Table> table) {
    const TableId id = table->spec().id;
    const auto at = std::ranges::lower_bound(tables_, id, {}, &Item::id);
    if (at != tables_.end() && at->id == id) return false;
    tables_.insert(at, {id, std::move(table)});
    return true;
  }
  struct Item {
    TableId id;
    std::unique_ptr<Table> table;
  };
  const std::vector<Item>& all() const { return tables_; }

 private:
  std::vector<Item> tables_;
};

}  // namespace

struct Partition::State {
  using Generation = uint64_t;
  PartitionId id;
  uint64_t seed = 0;
  TableList tables;
  Window window;
  LeaseToken floor;
  /// Every change belongs to the present generation. Every snapshot ends a generation.
  Generation generation = 1;
  /// The accepted snapshot has everything of this generation and of earlier ones.
  Generation accepted = 0;
  /// The generation in which the table definitions or the window last changed. Forgetting does not
  /// count.
  Generation meta_changed = 0;
  /// The newest snapshot, until it is accepted, and the generation that it ended.
  struct Taken {
    SnapshotNumber number;
    Generation generation;
  };
  std::optional<Taken> taken;
  /// The image that is being copied. Its rows are still in the images of its tables.
  struct Copying {
    PartitionImage image;
    std::vector<Table*> tables;
    size_t next;         // emplace() sets 0; Clang takes no initializer of a nested type here
    uint64_t row_count;  // how many rows the image will have
  };
  std::optional<Copying> copying;
  bool holds_half = false;
  /// A table with a row that is NaN or infinite, the first one that was found.
  const Table* diverged = nullptr;

  /// The sums over all tables, but for the tables that changed since they were counted.
  Sizes sums;
  std::vector<Table*> recount;
  Garbage garbage;

  /// Call it when a table has changed.
  void Changed(Table* table) {
    if (!table->finite() && diverged == nullptr) diverged = table;
    if (table->WantsRecount()) recount.push_back(table);
  }
  void AllChanged() {
    for (const TableList::Item& item : tables.all()) Changed(item.table.get());
  }
  /// Brings the sums up to date, and takes the garbage of the tables that changed.
  void Recount();
  Table* Find(TableId table) const { return tables.Find(table); }
  /// The answer to every push after some row has become NaN or infinite. Absent while all rows are
  /// finite.
  std::optional<ApplyResult> Diverged() const;
  /// The answer to a part before its rows are checked. Absent if the answer depends on its rows.
  std::optional<ApplyResult> Judge(const Part& part, const ShardId& shard) const;
  void Enter(const Part& part, const ShardId& shard);
  absl::Status CheckSizes(const PartGroup& group) const;
  std::optional<ApplyResult> Check(const Part& part, PartProgress* progress, WorkLimit* work);
  absl::Status AddImage(const PartitionImage& image);
  absl::Status AddRows(const RowImage& image);
};

Partition::Partition(PartitionId id, uint64_t job_seed) : state_(std::make_unique<State>()) {
  state_->id = id;
  state_->seed = job_seed;
}
Partition::~Partition() = default;

PartitionId Partition::id() const {
  return state_->id;
}

void Partition::AddTable(const TableSpec& spec, const WarmStartSource* warm_start) {
  if (KnowsTable(spec.id)) return;
  MUSTER_CHECK_MSG(spec.warm_start_directory.empty() || warm_start != nullptr,
                   fmt::format("table '{}' added without the rows it starts from", spec.name));
  AdoptTable(warm_start != nullptr ? Table::Filled(spec, state_->seed, state_->id, *warm_start)
                                   : std::make_unique<Table>(spec, state_->seed));
}

void Partition::AdoptTable(std::unique_ptr<Table> table) {
  state_->Changed(table.get());
  MUSTER_CHECK(state_->tables.Add(std::move(table)));
  state_->meta_changed = state_->generation;
}

bool Partition::KnowsTable(TableId table) const {
  return state_->Find(table) != nullptr;
}

bool Partition::holds_half() const {
  return state_->holds_half;
}

void Partition::State::Recount() {
  for (Table* const table : recount) {
    Table::Counted& counted = *table->counted();
    const Table::Counted now{table->rows(), table->bytes(), table->dirty_rows()};
    sums.rows += now.rows - counted.rows;
    sums.row_bytes += now.bytes - counted.bytes;
    sums.dirty_rows += now.dirty_rows - counted.dirty_rows;
    counted = now;
    table->TakeGarbage(&garbage);
    table->Recounted();
  }
  recount.clear();
}

std::optional<ApplyResult> Partition::State::Diverged() const {
  if (diverged == nullptr) return std::nullopt;
  return ApplyResult{ApplyCode::kBadRequest,
                     fmt::format("{}: the weights have diverged, and no push is accepted any more",
                                 diverged->not_finite())};
}

std::optional<ApplyResult> Partition::State::Judge(const Part& part, const ShardId& shard) const {
  // The token belongs to a lease that has ended. The pushes under it may already be forgotten.
  // Rule 2.2.
  if (part.token < floor) return ApplyResult{ApplyCode::kStaleLease, {}};
  if (auto diverged = Diverged()) return diverged;
  if (window.Contains(shard, part.minibatch)) return ApplyResult{ApplyCode::kSkipped, {}};
  if (part.minibatch.value() >= Window::kMinibatchesMax) {
    return ApplyResult{
        ApplyCode::kBadRequest,
        fmt::format("minibatch {} of shard {}: a shard has at most {} minibatches",
                    part.minibatch.value(), ToString(part.shard), Window::kMinibatchesMax)};
  }
  return std::nullopt;
}

void Partition::State::Enter(const Part& part, const ShardId& shard) {
  window.Add(shard, part.minibatch);
  meta_changed = generation;
  MUSTER_CHECK(!part.groups.empty() && part.token >= floor);
  MUSTER_CHECK(shard == part.shard);  // the window will find it again, under any lease
}

absl::Status Partition::State::CheckSizes(const PartGroup& group) const {
  const Table* table = Find(group.table);
  if (table == nullptr) {
    return absl::NotFoundError(fmt::format("table {} is not known", group.table.value()));
  }
  if (group.keys.size() * table->dim() != group.gradients.size()) {
    return table->CheckPull(group.keys, group.gradients.size());
  }
  return table->CheckRoom(group.keys.size());
}

/// The result is absent if the caller must continue: either everything is checked, or the work
/// limit is spent.
std::optional<ApplyResult> Partition::State::Check(const Part& part, PartProgress* progress,
                                                   WorkLimit* work) {
  for (; progress->group < part.groups.size(); ++progress->group, progress->row = 0) {
    const PartGroup& group = part.groups[progress->group];
    absl::Status status = CheckSizes(group);
    if (absl::IsNotFound(status)) {
      return ApplyResult{ApplyCode::kUnknownTable, std::string(Message(status))};
    }
    while (status.ok() && progress->row < group.keys.size()) {
      if (work->spent()) return std::nullopt;
      const Table* table = Find(group.table);
      const uint64_t bytes_each = sizeof(uint64_t) + table->dim() * sizeof(float);
      const size_t rows = work->Fits(group.keys.size() - progress->row, bytes_each);
      status = table->CheckPush(
          group.keys.subspan(progress->row, rows),
          group.gradients.subspan(progress->row * table->dim(), rows * table->dim()));
      work->Spend(rows * bytes_each);
      progress->row += rows;
    }
    if (!status.ok()) return ApplyResult{ApplyCode::kBadRequest, std::string(Message(status))};
  }
  return std::nullopt;
}

std::optional<ApplyResult> Partition::Apply(const Part& part, PartProgress* progress,
                                            WorkLimit* work, PushAhead* ahead) {
  using Stage = PartProgress::Stage;
  State& state = *state_;
  // Rule 12.19.
  // The shard and the minibatch identify a push, not the lease. A second run under another token is
  // the same push.
  const ShardId& shard = part.shard;
  MUSTER_CHECK(state.holds_half == (progress->stage == Stage::kApplying));
  if (progress->stage != Stage::kApplying) {
    // This is checked in every slice until the part begins, because the window and the floor may
    // change between slices.
    if (auto result = state.Judge(part, shard)) return result;
    progress->stage = Stage::kChecking;
    // If the part must be refused, it is refused here, before the first row changes.
    if (auto result = state.Check(part, progress, work)) return result;
    if (progress->group < part.groups.size()) return std::nullopt;
    // A question adds nothing.
    if (part.groups.empty()) return ApplyResult{ApplyCode::kMissing, {}};
    state.Enter(part, shard);
    *progress = {.stage = Stage::kApplying};
    state.holds_half = true;
  }
  for (; progress->group < part.groups.size(); ++progress->group, progress->row = 0) {
    const PartGroup& group = part.groups[progress->group];
    Table* table = state.Find(group.table);
    while (progress->row < group.keys.size()) {
      if (work->spent()) return std::nullopt;
      progress->row +=
          table->Apply(group.keys.subspan(progress->row),
                       group.gradients.subspan(progress->row * table->dim()), part.step, work);
      state.Changed(table);
    }
    if (ahead != nullptr) ahead->Applied(group.keys.size());
  }
  MUSTER_CHECK(state.holds_half);
  state.holds_half = false;
  if (auto diverged = state.Diverged()) return diverged;
  return ApplyResult{ApplyCode::kApplied, {}};
}

ApplyResult Partition::Apply(const Part& part, PushAhead* ahead) {
  PartProgress progress;
  WorkLimit work = WorkLimit::None();
  for (;;) {
    if (auto result = Apply(part, &progress, &work, ahead)) return *std::move(result);
  }
}

absl::Status Partition::Pull(TableId id, std::span<const uint64_t> keys,
                             std::span<float> values) const {
  const Table* table = state_->Find(id);
  if (table == nullptr) {
    return absl::NotFoundError(fmt::format("table {} is not known", id.value()));
  }
  MUSTER_RETURN_IF_ERROR(table->CheckPull(keys, values.size()));
  WorkLimit work = WorkLimit::None();
  MUSTER_CHECK(table->Pull(keys, values, &work) == keys.size());
  return absl::OkStatus();
}

void Partition::PrefetchWindow(const ShardId& shard) const {
  state_->window.Prefetch(shard);
}

const Table* Partition::FindTable(TableId table) const {
  return state_->Find(table);
}

void Partition::Forget(const ForgetState& forget) {
  // Rule 3.7.
  state_->floor = std::max(state_->floor, forget.floor);
  // Everything below the floor is refused, because a forgotten minibatch could otherwise be applied
  // twice.
  MUSTER_CHECK(state_->floor >= forget.floor);
  state_->window.Forget(forget);
}

void Partition::BeginImage(SnapshotNumber number, SnapshotKind kind) {
  State& state = *state_;
  MUSTER_CHECK(!state.copying.has_value());
  MUSTER_CHECK(!state.holds_half);
  State::Copying& copying = state.copying.emplace();
  copying.image.kind = kind;
  // A restored partition must refuse the same tokens as this one, and must skip every minibatch
  // that is in its rows.
  copying.image.floor = state.floor;
  copying.image.window = state.window.Entries();
  MUSTER_CHECK(copying.image.window.size() == state.window.shards());
  for (const TableList::Item& item : state.tables.all()) {
    Table* const table = copying.tables.emplace_back(item.table.get());
    copying.image.tables.push_back(table->spec());
    state.Changed(table);
    copying.row_count += kind == SnapshotKind::kBase ? table->rows() : table->dirty_rows();
    table->BeginImage(kind == SnapshotKind::kBase ? Table::Rows::kAll : Table::Rows::kDirty);
  }
  state.taken = State::Taken{number, state.generation};
  ++state.generation;
}

bool Partition::CopyImage(WorkLimit* work) {
  MUSTER_CHECK(state_->copying.has_value());
  State::Copying& copying = *state_->copying;
  for (; copying.next < copying.tables.size(); ++copying.next) {
    if (work->spent() || !copying.tables[copying.next]->CopyImage(work)) return false;
  }
  return true;
}

PartitionImage Partition::TakeImage() {
  State& state = *state_;
  MUSTER_CHECK(state.copying.has_value() && state.copying->next == state.copying->tables.size());
  MUSTER_CHECK(state.taken.has_value() && state.taken->generation < state.generation);
  PartitionImage image = std::move(state.copying->image);
  uint64_t row_count = 0;
  state.AllChanged();
  for (Table* table : state.copying->tables) {
    RowImage rows = table->TakeImage();
    row_count += rows.keys.size();
    if (!rows.keys.empty()) image.rows.push_back(std::move(rows));
  }
  MUSTER_CHECK(row_count == state.copying->row_count);
  state.copying.reset();
  return image;
}

void Partition::DropImage() {
  if (!state_->copying.has_value()) return;
  for (Table* table : state_->copying->tables) table->DropImage();
  state_->AllChanged();
  state_->copying.reset();
  state_->taken.reset();
}

PartitionImage Partition::Snapshot(SnapshotNumber number, SnapshotKind kind) {
  BeginImage(number, kind);
  for (WorkLimit work = WorkLimit::None(); !CopyImage(&work);) {
  }
  return TakeImage();
}

bool Partition::Accepted(SnapshotNumber number) {
  State& state = *state_;
  if (!state.taken.has_value() || state.taken->number != number || state.copying.has_value()) {
    return false;
  }
  MUSTER_CHECK(state.taken->generation > state.accepted);
  state.accepted = state.taken->generation;
  MUSTER_CHECK(state.accepted < state.generation);
  state.taken.reset();
  for (const TableList::Item& item : state.tables.all()) item.table->Accept();
  state.AllChanged();
  return true;
}

bool Partition::UnchangedSinceAccepted() const {
  return state_->meta_changed <= state_->accepted && sizes().dirty_rows == 0;
}

absl::Status Partition::State::AddRows(const RowImage& image) {
  Table* table = Find(image.table);
  if (table == nullptr) {
    return absl::DataLossError(
        fmt::format("it has rows of table {}, but does not define it", image.table.value()));
  }
  if (image.floats_per_row != table->floats_per_row() ||
      image.rows.size() != image.keys.size() * image.floats_per_row) {
    return absl::DataLossError(fmt::format(
        "{} rows of table '{}' have {} floats each ({} in all), not {}", image.keys.size(),
        table->spec().name, image.floats_per_row, image.rows.size(), table->floats_per_row()));
  }
  if (absl::Status status = table->CheckPull(image.keys, image.keys.size() * table->dim());
      !status.ok()) {
    return absl::DataLossError(fmt::format("{}", Message(status)));
  }
  const std::span<const float> rows = image.rows;
  for (size_t i = 0; i < image.keys.size(); ++i) {
    table->SetRow(image.keys[i], rows.subspan(i * image.floats_per_row, image.floats_per_row));
  }
  Changed(table);
  return absl::OkStatus();
}

absl::Status Partition::State::AddImage(const PartitionImage& image) {
  for (const TableSpec& spec : image.tables) {
    const Table* known = Find(spec.id);
    if (known == nullptr) {
      tables.Add(std::make_unique<Table>(spec, seed));
    } else if (known->spec() != spec) {
      return absl::DataLossError(fmt::format("its table {} differs from {} in an earlier file",
                                             ToString(spec), ToString(known->spec())));
    }
  }
  for (const RowImage& rows : image.rows) MUSTER_RETURN_IF_ERROR(AddRows(rows));
  // Every image has the whole window and the floor, so only those of the last image count.
  window = Window();
  for (const WindowEntry& entry : image.window) window.Set(entry);
  floor = image.floor;
  return absl::OkStatus();
}

absl::Status Partition::Restore(SnapshotNumber number, std::span<const PartitionImage> images) {
  auto state = std::make_unique<State>();
  state->id = state_->id;
  state->seed = state_->seed;
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string context = fmt::format("image {} of {} of snapshot {} of partition {}", i + 1,
                                            images.size(), ToString(number), id().value());
    if ((images[i].kind == SnapshotKind::kBase) != (i == 0)) {
      return absl::DataLossError(
          fmt::format("{}: a chain must be one base followed by deltas", context));
    }
    MUSTER_RETURN_IF_ERROR_PREPEND(state->AddImage(images[i]), context);
  }
  state_ = std::move(state);
  Garbage outgrown;
  TakeGarbage(&outgrown);
  return absl::OkStatus();
}

void Partition::TakeGarbage(Garbage* garbage) {
  state_->Recount();
  std::ranges::move(std::exchange(state_->garbage, {}), std::back_inserter(*garbage));
}

Partition::Sizes Partition::sizes() const {
  state_->Recount();
  Sizes sizes = state_->sums;
  sizes.window_shards = state_->window.shards();
  return sizes;
}

LeaseToken Partition::floor() const {
  return state_->floor;
}

bool Partition::InWindow(const ShardId& shard, MinibatchIndex minibatch) const {
  return state_->window.Contains(shard, minibatch);
}

}  // namespace muster::ps
