#include "ps/core/owned_partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "ps/snapshot/chain.h"

namespace muster::ps {

OwnedPartitions::OwnedPartitions(const Options& options)
    : options_(options),
      slots_((options.partition_count + options.lane_count - 1) / options.lane_count) {
  MUSTER_CHECK(options.lane < options.lane_count);
}

OwnedPartitions::Slot* OwnedPartitions::Find(uint32_t partition) {
  if (partition >= options_.partition_count || partition % options_.lane_count != options_.lane) {
    return nullptr;
  }
  return &slots_[partition / options_.lane_count];
}

PartitionId OwnedPartitions::IdOf(const Slot& slot) const {
  const auto index = static_cast<uint32_t>(&slot - slots_.data());
  return PartitionId(index * options_.lane_count + options_.lane);
}

void OwnedPartitions::DropSnapshots(Slot* slot) {
  if (copying_.has_value() && copying_->partition == IdOf(*slot)) {
    slot->partition->DropImage();
    copying_.reset();
  }
  slot->outstanding.reset();
  slot->wanted.reset();
  wanted_.erase(IdOf(*slot));
  slot->error.clear();
}

void OwnedPartitions::Drop(Slot* slot) {
  DropSnapshots(slot);
  if (slot->partition != nullptr) Discard(std::move(slot->partition), &garbage_);
  slot->load.reset();
  slot->fills.clear();
}

const Partition* OwnedPartitions::Find(PartitionId partition) const {
  Slot* const slot = const_cast<OwnedPartitions*>(this)->Find(partition.value());
  return slot == nullptr ? nullptr : slot->partition.get();
}

OwnerEpoch OwnedPartitions::ServedEpoch(PartitionId partition) const {
  return Find(partition) == nullptr ? OwnerEpoch()
                                    : slots_[partition.value() / options_.lane_count].epoch;
}

void OwnedPartitions::AddTable(const TableSpec& table) {
  const auto [known, added] = tables_.try_emplace(table.id, KnownTable{table, nullptr});
  if (!added) return;
  if (widths_.size() <= table.id.value()) widths_.resize(table.id.value() + 1, 0);
  widths_[table.id.value()] = table.dim;
  for (Slot& slot : slots_) GiveTable(known->second, &slot);
}

void OwnedPartitions::SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
  const auto known = tables_.find(table);
  if (known == tables_.end() || !known->second.waits()) return;
  known->second.warm_start = std::move(rows);
  for (Slot& slot : slots_) GiveTable(known->second, &slot);
}

void OwnedPartitions::GiveTable(const KnownTable& table, Slot* slot) {
  if (slot->partition == nullptr || slot->partition->KnowsTable(table.spec.id)) return;
  if (table.waits()) {
    news_ = true;
  } else if (table.warm_start == nullptr) {
    slot->partition->AddTable(table.spec);
  } else if (slot->fills.try_emplace(table.spec.id, next_fill_).second) {
    fills_.push_back({next_fill_++, IdOf(*slot), table.spec, table.warm_start});
  }
}

std::vector<FillJob> OwnedPartitions::TakeFills() {
  return std::exchange(fills_, {});
}

void OwnedPartitions::Filled(const FillJob& job, std::unique_ptr<Table> table) {
  Slot* const slot = Find(job.partition.value());
  MUSTER_CHECK(slot != nullptr);
  const auto fill = slot->fills.find(job.table.id);
  if (fill == slot->fills.end() || fill->second != job.id) {  // of a partition that is gone
    return Discard(std::move(table), &garbage_);
  }
  slot->fills.erase(fill);
  MUSTER_CHECK(slot->partition != nullptr);
  slot->partition->AdoptTable(std::move(table));
  slot->traffic.changed = true;
  news_ = true;
}

std::vector<TableId> OwnedPartitions::WarmStartsWanted() const {
  std::vector<TableId> wanted;
  for (const auto& [id, table] : tables_) {
    if (table.waits() && std::ranges::any_of(slots_, [id = id](const Slot& slot) {
          return slot.partition != nullptr && !slot.partition->KnowsTable(id);
        })) {
      wanted.push_back(id);
    }
  }
  return wanted;
}

void OwnedPartitions::Apply(const LaneCommands& commands) {
  for (Slot& slot : slots_) {
    Traffic& traffic = slot.traffic;
    if (traffic.reported_in <= commands.sequence) traffic.reported_in = 0;
    if (commands.new_master && slot.partition != nullptr) traffic.changed = true;
  }
  for (const OwnCommand& command : commands.owns) Own(command);
  for (const AcceptedSnapshot& accepted : commands.accepted) Accept(accepted);
  for (const SnapshotCommand& command : commands.snapshots) {
    WantSnapshot(command, commands.sequence);
  }
  if (commands.forget != nullptr) {
    forget_ = commands.forget;
    for (Slot& slot : slots_) {
      if (slot.partition) slot.partition->Forget(*forget_);
    }
  }
}

bool OwnedPartitions::Keeps(const Slot& slot, const OwnCommand& command, OwnerEpoch from) {
  if (MUSTER_PLANTED(kOwnReloads) && command.restored && slot.epoch == command.epoch) return false;
  const bool has_state = slot.partition != nullptr || slot.load.has_value();
  return has_state && slot.epoch >= from;
}

void OwnedPartitions::Own(const OwnCommand& command) {
  Slot* const slot = Find(command.partition.value());
  if (slot == nullptr || command.epoch < slot->told) return;
  MUSTER_CHECK(slot->epoch <= slot->told);
  const bool repeat = command.epoch == slot->told;
  slot->told = command.epoch;
  if (Keeps(*slot, command, command.epoch)) return;
  slot->missing = false;
  if (Keeps(*slot, command, command.since)) {
    slot->epoch = command.epoch;
    // The master takes snapshots of the current epoch only; what they held is still dirty. A load
    // goes on, and a failed one stays one.
    if (!slot->load.has_value()) DropSnapshots(slot);
    news_ = true;
    return;
  }
  if (!command.restored) {
    // Copies come with moves; until then there is nothing else to take. What an older epoch left
    // here goes on answering those who know no better.
    slot->missing = true;
    if (!repeat) news_ = true;
    return;
  }
  slot->epoch = command.epoch;
  Drop(slot);
  if (command.manifest.files.empty()) {
    Serve(slot, std::make_unique<Partition>(command.partition, options_.job_seed),
          command.manifest);
    return;
  }
  slot->load = Load{.id = next_load_++, .manifest = command.manifest};
}

void OwnedPartitions::Serve(Slot* slot, std::unique_ptr<Partition> partition,
                            const Manifest& manifest) {
  MUSTER_CHECK(slot->partition == nullptr && slot->fills.empty());
  slot->load.reset();
  slot->error.clear();
  slot->force_base = false;
  slot->accepted = manifest;
  slot->partition = std::move(partition);
  slot->state = ++states_;
  slot->traffic.changed = true;
  for (const auto& [id, table] : tables_) GiveTable(table, slot);
  if (forget_ != nullptr && !MUSTER_WEAKENED(kLanesForget)) slot->partition->Forget(*forget_);
  news_ = true;
}

std::vector<LoadJob> OwnedPartitions::TakeLoads(TimePoint now) {
  std::vector<LoadJob> jobs;
  for (Slot& slot : slots_) {
    std::optional<Load>& load = slot.load;
    if (!load.has_value() || load->started || now < load->not_before) continue;
    load->started = true;
    jobs.push_back({load->id, IdOf(slot), load->manifest});
  }
  return jobs;
}

void OwnedPartitions::Loaded(uint64_t load_id, absl::StatusOr<std::unique_ptr<Partition>> partition,
                             TimePoint now) {
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& s) { return s.load.has_value() && s.load->id == load_id; });
  if (slot == slots_.end()) {  // owned anew, or by another server, meanwhile
    if (partition.ok()) Discard(*std::move(partition), &garbage_);
    return;
  }
  if (!partition.ok()) {
    slot->error = std::string(Message(partition.status()));
    Log(LogLevel::kError, "{}", slot->error);
    slot->load->started = false;
    slot->load->not_before = now + options_.retry_pause;
    news_ = true;
    return;
  }
  MUSTER_CHECK(slot->load->started);
  ++counters_.partitions_restored;
  const Manifest manifest = slot->load->manifest;
  Serve(&*slot, *std::move(partition), manifest);
}

bool OwnedPartitions::IsOutstanding(const Slot& slot, SnapshotNumber number) {
  return slot.outstanding.has_value() && slot.outstanding->written &&
         (slot.outstanding->number == number || MUSTER_PLANTED(kAcceptsAny));
}

bool OwnedPartitions::NeedsBaseAfterUnknown() {
  return !MUSTER_PLANTED(kForceBaseForgotten) && !MUSTER_WEAKENED(kLateBase);
}

void OwnedPartitions::Accept(const AcceptedSnapshot& accepted) {
  Slot* const slot = Find(accepted.partition.value());
  if (slot == nullptr || slot->partition == nullptr) return;
  if (accepted.number == slot->accepted.number) return;
  if (!IsOutstanding(*slot, accepted.number)) {
    slot->force_base = NeedsBaseAfterUnknown();
    return;
  }
  if (MUSTER_PLANTED_CALL(LosesFileName(slot, accepted.number))) return;
  const Outstanding& outstanding = *slot->outstanding;
  MUSTER_CHECK(outstanding.chain.number == outstanding.number);
  if (outstanding.with_file) slot->partition->Accepted(outstanding.number);
  if (outstanding.chain.files.size() == 1) slot->force_base = false;
  slot->accepted = outstanding.chain;
  slot->outstanding.reset();
  if (slot->wanted.has_value() && slot->wanted->number <= accepted.number) {
    slot->wanted.reset();
    wanted_.erase(accepted.partition);
  }
}

void OwnedPartitions::WantSnapshot(const SnapshotCommand& command, uint64_t sequence) {
  Slot* const slot = Find(command.partition.value());
  if (slot == nullptr || slot->partition == nullptr || slot->epoch != command.epoch) return;
  if (command.number <= slot->accepted.number) return;
  if (slot->wanted.has_value() && command.number < slot->wanted->number) return;
  if (slot->outstanding.has_value()) {
    const Outstanding& outstanding = *slot->outstanding;
    if (command.number <= outstanding.number) return;
    // The master has had the report and asks for a newer one without having accepted it: that one
    // will never count. Before it had the report it still might, so the new one waits.
    const bool had_report =
        outstanding.first_reported != 0 && outstanding.first_reported <= sequence;
    if (outstanding.written && had_report) {
      slot->outstanding.reset();
      if (MUSTER_WEAKENED(kLateBase)) slot->force_base = true;
    }
  }
  MUSTER_CHECK(wanted_.contains(command.partition) == slot->wanted.has_value());
  slot->wanted = command;
  wanted_.insert(command.partition);
}

bool OwnedPartitions::BeginImage(TimePoint now) {
  if (now < snapshots_not_before_ || copying_.has_value()) return false;
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    Slot* const slot = Find(it->value());
    MUSTER_CHECK(slot != nullptr && slot->partition != nullptr && slot->wanted.has_value());
    const bool waits = !slot->partition->MayBeImaged();
    if (waits) image_waits_ = true;
    if (slot->outstanding.has_value() || waits) {
      ++it;
      continue;
    }
    const SnapshotCommand command = *std::exchange(slot->wanted, std::nullopt);
    it = wanted_.erase(it);
    if (BeginSnapshot(slot, command)) return true;
  }
  return false;
}

bool OwnedPartitions::BeginSnapshot(Slot* slot, const SnapshotCommand& command) {
  MUSTER_CHECK(!slot->outstanding.has_value());
  Outstanding& outstanding = slot->outstanding.emplace(Outstanding{});
  outstanding.number = command.number;
  outstanding.cut = command.cut;
  if (slot->partition->UnchangedSinceAccepted() && !slot->force_base) {
    outstanding.written = true;
    outstanding.chain = {command.number, command.cut, slot->accepted.files};
    news_ = true;
    return false;
  }
  outstanding.with_file = true;
  outstanding.kind = slot->force_base ? SnapshotKind::kBase : NextSnapshotKind(slot->accepted);
  slot->partition->BeginImage(command.number, outstanding.kind);
  copying_ = SnapshotJob{command.partition, command.epoch, command.number, {}};
  return true;
}

OwnedPartitions::Copy OwnedPartitions::CopyImage(WorkLimit* work, SnapshotJob* job) {
  if (!copying_.has_value()) return Copy::kGone;
  Slot* const slot = Find(copying_->partition.value());
  MUSTER_CHECK(slot != nullptr && slot->partition != nullptr);
  if (!slot->partition->CopyImage(work)) return Copy::kMore;
  *job = *std::exchange(copying_, std::nullopt);
  job->image = slot->partition->TakeImage();
  return Copy::kDone;
}

std::optional<SnapshotJob> OwnedPartitions::NextSnapshot(TimePoint now) {
  if (!BeginImage(now)) return std::nullopt;
  WorkLimit work = WorkLimit::None();
  SnapshotJob job;
  while (CopyImage(&work, &job) == Copy::kMore) {
  }
  return job;
}

void OwnedPartitions::Written(PartitionId partition, SnapshotNumber number,
                              absl::StatusOr<SnapshotFile> file, TimePoint now) {
  if (file.ok()) {
    ++counters_.snapshots;
    counters_.snapshot_bytes += file->bytes;
  } else {
    Log(LogLevel::kError, "{}", Message(file.status()));
    snapshots_not_before_ = now + options_.retry_pause;
    news_ = true;
  }
  Slot* const slot = Find(partition.value());
  if (slot == nullptr || !slot->outstanding.has_value() || slot->outstanding->number != number) {
    return;  // the epoch it belonged to is over
  }
  Outstanding& outstanding = *slot->outstanding;
  if (file.ok()) {
    slot->error.clear();
    outstanding.written = true;
    outstanding.chain =
        ExtendChain(slot->accepted, outstanding.kind, outstanding.number, outstanding.cut, *file);
    news_ = true;
    return;
  }
  if (MUSTER_PLANTED(kFailedWriteCounts)) slot->partition->Accepted(number);
  // Its rows are still dirty; the next image has them again.
  slot->error = std::string(Message(file.status()));
  if (!slot->wanted.has_value()) {
    slot->wanted = SnapshotCommand{partition, slot->epoch, outstanding.cut, outstanding.number};
    wanted_.insert(partition);
  }
  slot->outstanding.reset();
}

Garbage OwnedPartitions::TakeGarbage() {
  for (Slot& slot : slots_) {
    if (slot.partition != nullptr) slot.partition->TakeGarbage(&garbage_);
  }
  return std::exchange(garbage_, {});
}

LaneReport OwnedPartitions::Report(uint64_t sequence) {
  LaneReport report;
  report.sequence = sequence;
  report.counters = counters_;
  report.counters.service_us = static_cast<uint64_t>(service_ / std::chrono::microseconds(1));
  for (Slot& slot : slots_) {
    const PartitionId id = IdOf(slot);
    std::string& error = slot.load.has_value() ? report.restore_error : report.snapshot_error;
    if (error.empty()) error = slot.error;
    if (slot.missing) report.missing.push_back({id, slot.told});
    if (slot.partition == nullptr) continue;
    const Partition::Sizes sizes = slot.partition->sizes();
    report.counters.rows += sizes.rows;
    report.counters.row_bytes += sizes.row_bytes;
    report.owned.push_back({id, slot.epoch, slot.accepted.number});
    if (slot.outstanding.has_value() && slot.outstanding->written) {
      Outstanding& outstanding = *slot.outstanding;
      if (outstanding.first_reported == 0) outstanding.first_reported = sequence;
      report.snapshots.push_back({id, slot.epoch, outstanding.chain});
    }
  }
  report.warm_starts_wanted = WarmStartsWanted();
  news_ = false;
  return report;
}

std::vector<PartitionTraffic> OwnedPartitions::ReportTraffic(uint64_t sequence, size_t limit) {
  std::vector<PartitionTraffic> report;
  for (size_t looked = 0; looked < slots_.size() && report.size() < limit; ++looked) {
    Slot& slot = slots_[next_traffic_++ % slots_.size()];
    Traffic& traffic = slot.traffic;
    if (slot.partition == nullptr || (!traffic.changed && traffic.reported_in == 0)) continue;
    traffic.changed = false;
    traffic.reported_in = sequence;
    const Partition::Sizes sizes = slot.partition->sizes();
    report.push_back({IdOf(slot), traffic.pulls, traffic.pushes, traffic.rows, traffic.bytes,
                      static_cast<uint64_t>(traffic.service_ns / 1'000), sizes.rows,
                      sizes.row_bytes});
  }
  return report;
}

}  // namespace muster::ps
