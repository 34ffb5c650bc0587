#include "ps/core/owned_partitions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"

namespace muster::ps {

OwnedPartitions::OwnedPartitions(const Options& options)
    : options_(options),
      lane_({options.partition_count, options.lane, options.lane_count}),
      tables_(&lane_),
      traffic_(&lane_),
      snapshots_(&lane_, options.retry_pause),
      pulls_(&lane_, &tables_, &traffic_, options.reply_bytes_max),
      pushes_(&lane_, &tables_, &traffic_),
      told_(lane_.slots().size()) {}

void OwnedPartitions::Apply(const LaneCommands& commands) {
  traffic_.Answered(commands.sequence);
  if (commands.new_master) traffic_.NewMaster();
  for (const OwnCommand& command : commands.owns) Own(command);
  for (const AcceptedSnapshot& accepted : commands.accepted) snapshots_.Accept(accepted);
  for (const SnapshotCommand& command : commands.snapshots) {
    snapshots_.Want(command, commands.sequence);
  }
  if (commands.forget != nullptr) {
    forget_ = commands.forget;
    for (Slot& slot : lane_.slots()) {
      if (slot.partition != nullptr) slot.partition->Forget(*forget_);
    }
  }
}

bool OwnedPartitions::Keeps(const Slot& slot, OwnerEpoch from) {
  return slot.HasState() && slot.epoch >= from;
}

void OwnedPartitions::Own(const OwnCommand& command) {
  Slot* const slot = lane_.Find(command.partition);
  if (slot == nullptr) return;
  Told& told = told_[slot->index];
  if (command.epoch < told.epoch) return;
  MUSTER_CHECK(slot->epoch <= told.epoch);
  const bool repeat = command.epoch == told.epoch;
  told.epoch = command.epoch;
  if (Keeps(*slot, command.epoch)) return;
  told.missing = false;
  if (Keeps(*slot, command.since)) {
    slot->epoch = command.epoch;
    // The master accepts only snapshots of the current epoch, and the rows of the dropped snapshots
    // are still dirty. A load continues, and a failed load stays failed.
    if (!slot->load.has_value()) snapshots_.Drop(slot);
    lane_.news = true;
    return;
  }
  if (!command.restored) {
    // No other copy of the state exists, because partitions cannot move yet. The state of an older
    // epoch continues to answer workers that have an older map.
    told.missing = true;
    if (!repeat) lane_.news = true;
    return;
  }
  // The state that is dropped must be of an earlier epoch, because pushes of this epoch are in no
  // snapshot yet.
  MUSTER_CHECK(!slot->HasState() || slot->epoch < command.epoch);
  slot->epoch = command.epoch;
  Drop(slot);
  if (command.manifest.files.empty()) {
    Serve(slot, std::make_unique<Partition>(command.partition, options_.job_seed),
          command.manifest);
    return;
  }
  slot->load = Load{.id = next_load_++, .manifest = command.manifest};
}

void OwnedPartitions::Drop(Slot* slot) {
  snapshots_.Drop(slot);
  tables_.Drop(*slot);
  if (slot->partition != nullptr) Discard(std::move(slot->partition), &lane_.garbage);
  slot->load.reset();
}

void OwnedPartitions::Serve(Slot* slot, std::unique_ptr<Partition> partition,
                            const Manifest& manifest) {
  MUSTER_CHECK(slot->partition == nullptr && partition->id() == slot->id);
  MUSTER_CHECK(slot->epoch <= told_[slot->index].epoch);
  slot->load.reset();
  slot->partition = std::move(partition);
  slot->state = ++states_;
  snapshots_.Begin(*slot, manifest);
  traffic_.Changed(*slot);
  tables_.GiveAll(slot);
  if (forget_ != nullptr) slot->partition->Forget(*forget_);
  lane_.news = true;
}

std::vector<LoadJob> OwnedPartitions::TakeLoads(TimePoint now) {
  std::vector<LoadJob> jobs;
  for (Slot& slot : lane_.slots()) {
    std::optional<Load>& load = slot.load;
    if (!load.has_value() || load->started || now < load->not_before) continue;
    load->started = true;
    jobs.push_back({load->id, slot.id, load->manifest});
  }
  return jobs;
}

void OwnedPartitions::Loaded(uint64_t load_id, absl::StatusOr<std::unique_ptr<Partition>> partition,
                             TimePoint now) {
  const auto slot = std::ranges::find_if(
      lane_.slots(), [&](const Slot& s) { return s.load.has_value() && s.load->id == load_id; });
  if (slot == lane_.slots().end()) {  // meanwhile under a new ownership, or at another server
    if (partition.ok()) Discard(*std::move(partition), &lane_.garbage);
    return;
  }
  MUSTER_CHECK(slot->load->started);
  if (!partition.ok()) {
    slot->load->error = std::string(Message(partition.status()));
    Log(LogLevel::kError, "{}", slot->load->error);
    slot->load->started = false;
    slot->load->not_before = now + options_.retry_pause;
    lane_.news = true;
    return;
  }
  ++lane_.counters.partitions_restored;
  const Manifest manifest = slot->load->manifest;
  Serve(&*slot, *std::move(partition), manifest);
}

void OwnedPartitions::Filled(const FillJob& job, std::unique_ptr<Table> table) {
  if (tables_.Filled(job, std::move(table))) traffic_.Changed(*lane_.Find(job.partition));
}

Progress OwnedPartitions::Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                               RequestProgress* progress) {
  const Progress result = pushes_.Serve(request, slice, reply, progress);
  if (pushes_.part_whole()) snapshots_.OnPartWhole();
  return result;
}

Garbage OwnedPartitions::TakeGarbage() {
  for (Slot& slot : lane_.slots()) {
    if (slot.partition != nullptr) slot.partition->TakeGarbage(&lane_.garbage);
  }
  return std::exchange(lane_.garbage, {});
}

LaneReport OwnedPartitions::Report(uint64_t sequence) {
  LaneReport report;
  report.sequence = sequence;
  report.counters = lane_.counters;
  report.counters.service_us =
      static_cast<uint64_t>(traffic_.service() / std::chrono::microseconds(1));
  for (const Slot& slot : lane_.slots()) {
    const Told& told = told_[slot.index];
    if (told.missing) report.missing.push_back({slot.id, told.epoch});
    if (slot.load.has_value()) {
      if (report.restore_error.empty()) report.restore_error = slot.load->error;
    } else if (report.snapshot_error.empty()) {
      report.snapshot_error = snapshots_.ErrorOf(slot);
    }
    if (slot.partition == nullptr) continue;
    const Partition::Sizes sizes = slot.partition->sizes();
    report.counters.rows += sizes.rows;
    report.counters.row_bytes += sizes.row_bytes;
    snapshots_.Report(slot, sequence, &report);
  }
  report.warm_starts_wanted = tables_.WarmStartsWanted();
  lane_.news = false;
  return report;
}

}  // namespace muster::ps
