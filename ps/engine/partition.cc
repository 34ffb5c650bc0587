#include "ps/engine/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"

namespace muster::ps {

struct Partition::State {
  using Generation = uint64_t;
  PartitionId id;
  uint64_t seed = 0;
  absl::flat_hash_map<TableId, std::unique_ptr<Table>> tables;
  Window window;
  LeaseToken floor;
  /// What changes now belongs to this generation; every snapshot ends one.
  Generation generation = 1;
  /// Everything of this and earlier generations is in the accepted snapshot.
  Generation accepted = 0;
  /// Last change of the table definitions, and of the window other than by forgetting.
  Generation meta_changed = 0;
  /// The newest snapshot while it is not accepted, and the generation that it ended.
  struct Taken {
    SnapshotNumber number;
    Generation generation;
  };
  std::optional<Taken> taken;

  Table* Find(TableId table) const {
    const auto found = tables.find(table);
    return found == tables.end() ? nullptr : found->second.get();
  }
  std::vector<Table*> Sorted() const {
    std::vector<Table*> sorted;
    for (const auto& [id, table] : tables) sorted.push_back(table.get());
    std::ranges::sort(sorted, {}, [](const Table* table) { return table->spec().id; });
    return sorted;
  }
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
  const TableId id = table->spec().id;
  const bool added = state_->tables.emplace(id, std::move(table)).second;
  MUSTER_CHECK(added);
  state_->meta_changed = state_->generation;
}

bool Partition::KnowsTable(TableId table) const {
  return state_->tables.contains(table);
}

ApplyResult Partition::Apply(const Part& part) {
  State& state = *state_;
  if (part.token < state.floor && !MUSTER_PLANTED(kStaleApplied)) {
    return {ApplyCode::kStaleLease, {}};
  }
  ShardId shard = part.shard;
  if (MUSTER_PLANTED(kPushIdHasToken)) shard.index = ShardIndex(part.token.value());
  if (state.window.Contains(shard, part.minibatch)) return {ApplyCode::kSkipped, {}};
  if (part.minibatch.value() >= Window::kMinibatchesMax) {
    return {ApplyCode::kBadRequest,
            fmt::format("minibatch {} of shard {}: a shard has at most {} minibatches",
                        part.minibatch.value(), ToString(part.shard), Window::kMinibatchesMax)};
  }
  if (part.groups.empty()) {
    if (MUSTER_PLANTED(kAskingAdds)) state.window.Add(shard, part.minibatch);
    return {ApplyCode::kMissing, {}};
  }
  // Everything that can be refused is refused here, before the first row changes.
  for (const PartGroup& group : part.groups) {
    const Table* table = state.Find(group.table);
    if (table == nullptr) {
      return {ApplyCode::kUnknownTable, fmt::format("table {} is not known", group.table.value())};
    }
    if (const absl::Status status = table->Check(group.keys, group.gradients); !status.ok()) {
      return {ApplyCode::kBadRequest, std::string(Message(status))};
    }
  }
  for (const PartGroup& group : part.groups) {
    state.Find(group.table)->Apply(group.keys, group.gradients, part.step);
  }
  state.window.Add(shard, part.minibatch);
  state.meta_changed = state.generation;
  return {ApplyCode::kApplied, {}};
}

absl::Status Partition::Pull(TableId id, std::span<const uint64_t> keys,
                             std::span<float> values) const {
  const Table* table = state_->Find(id);
  if (table == nullptr) {
    return absl::NotFoundError(fmt::format("table {} is not known", id.value()));
  }
  MUSTER_RETURN_IF_ERROR(table->CheckPull(keys, values.size()));
  table->Pull(keys, values);
  return absl::OkStatus();
}

void Partition::Forget(const ForgetState& forget) {
  if (!MUSTER_PLANTED(kFloorNotTaken)) state_->floor = std::max(state_->floor, forget.floor);
  state_->window.Forget(forget);
}

PartitionImage Partition::Snapshot(SnapshotNumber number, SnapshotKind kind) {
  State& state = *state_;
  PartitionImage image;
  image.kind = kind;
  if (!MUSTER_PLANTED(kFloorNotKept)) image.floor = state.floor;
  if (!MUSTER_PLANTED(kWindowNotKept)) image.window = state.window.Entries();
  for (Table* table : state.Sorted()) {
    image.tables.push_back(table->spec());
    const bool all = kind == SnapshotKind::kBase && !MUSTER_PLANTED(kBaseLacksClean);
    RowImage rows = table->Image(all ? Table::Rows::kAll : Table::Rows::kDirty);
    if (!rows.keys.empty()) image.rows.push_back(std::move(rows));
  }
  state.taken = State::Taken{number, state.generation};
  ++state.generation;
  if (MUSTER_PLANTED(kDeltaClean)) Accepted(number);
  return image;
}

void Partition::Accepted(SnapshotNumber number) {
  State& state = *state_;
  if (!state.taken.has_value() || state.taken->number != number) return;
  MUSTER_CHECK(state.taken->generation > state.accepted);
  state.accepted = state.taken->generation;
  state.taken.reset();
  for (const auto& [id, table] : state.tables) table->Accept();
}

bool Partition::UnchangedSinceAccepted() const {
  if (MUSTER_PLANTED(kUnchangedAlways) && state_->accepted > 0) return true;
  return state_->meta_changed <= state_->accepted &&
         std::ranges::all_of(state_->tables,
                             [](const auto& entry) { return entry.second->dirty_rows() == 0; });
}

absl::Status Partition::State::AddRows(const RowImage& image) {
  Table* table = Find(image.table);
  if (table == nullptr) {
    return absl::DataLossError(
        fmt::format("it holds rows of table {}, which it does not define", image.table.value()));
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
  return absl::OkStatus();
}

absl::Status Partition::State::AddImage(const PartitionImage& image) {
  for (const TableSpec& spec : image.tables) {
    const Table* known = Find(spec.id);
    if (known == nullptr) {
      tables.emplace(spec.id, std::make_unique<Table>(spec, seed));
    } else if (known->spec() != spec) {
      return absl::DataLossError(fmt::format("its table {} differs from an earlier file's {}",
                                             ToString(spec), ToString(known->spec())));
    }
  }
  for (const RowImage& rows : image.rows) MUSTER_RETURN_IF_ERROR(AddRows(rows));
  // The window and the floor are whole in every image, so the last one's count.
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
          fmt::format("{}: a chain is one base, first, and deltas after it", context));
    }
    MUSTER_RETURN_IF_ERROR_PREPEND(state->AddImage(images[i]), context);
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

Partition::Sizes Partition::sizes() const {
  Sizes sizes;
  for (const auto& [id, table] : state_->tables) {
    sizes.rows += table->rows();
    sizes.row_bytes += table->bytes();
    sizes.dirty_rows += table->dirty_rows();
  }
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
