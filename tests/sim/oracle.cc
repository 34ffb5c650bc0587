#include "tests/sim/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sharding/partition_of.h"
#include "tests/sim/machine/sim_topic.h"

namespace muster::sim {

void Oracle::Fail(std::string kind, std::string text) {
  if (failed()) return;
  kind_ = std::move(kind);
  text_ = std::move(text);
}

float Oracle::MarkIn(const ps::Partition& partition, uint32_t part) const {
  const uint64_t key = workload_->MarkOf(part);
  float value = 0;
  if (!partition.Pull(kMarks, {&key, 1}, {&value, 1}).ok()) return 0;  // no part has come yet
  return value;
}

void Oracle::OnPart(const ps::Partition& partition, const ShardId& shard, MinibatchIndex minibatch,
                    bool ok) {
  const PartSet parts = PartsOf(shard, minibatch) & workload_->PartsIn(partition.id());
  for (size_t i = parts._Find_first(); i < kPartsMax; i = parts._Find_next(i)) {
    const auto part = static_cast<uint32_t>(i);
    const float mark = MarkIn(partition, part);
    if (mark > 1) {
      Fail("doubled", fmt::format("{} took effect {} times", workload_->NameOf(part), mark));
    } else if (ok && mark != 1) {
      Fail("lost",
           fmt::format("{} was answered OK and is not in the rows", workload_->NameOf(part)));
    }
  }
}

PartSet Oracle::PartsOf(const ShardId& shard) {
  if (!Workload::Trains(shard)) return {};
  if (!Workload::IsStream(shard)) return workload_->PartsOf(shard);
  const auto range = stream_shards_.find(shard);
  if (range != stream_shards_.end()) return workload_->PartsOf(range->second);
  Fail("range", fmt::format("shard {} has no range in the journal", ToString(shard)));
  return {};
}

PartSet Oracle::PartsOf(const ShardId& shard, MinibatchIndex minibatch) {
  if (!Workload::IsStream(shard)) return workload_->BatchOf(shard, minibatch).parts;
  const auto range = stream_shards_.find(shard);
  if (range == stream_shards_.end()) return PartsOf(shard);
  return workload_->PartsOf(Workload::OffsetsOf(range->second, minibatch));
}

void Oracle::CheckStreamShard(const StreamShardRecord& record) {
  const bool added =
      stream_shards_.try_emplace(record.shard, StreamWork{"topic", record.cut.ranges}).second;
  for (const OffsetRange& range : record.cut.ranges) {
    uint64_t& cut = cut_[range.partition];
    if (!added || range.begin != cut) {
      Fail("range", fmt::format("shard {} has the offsets [{}, {}) of topic partition {}, which "
                                "was cut up to {}{}",
                                ToString(record.shard), range.begin, range.end,
                                range.partition.value(), cut, added ? "" : ", and it had others"));
    }
    cut = range.end;
  }
}

void Oracle::OnStreamShard(const ShardId& shard, const StreamWork& work) {
  const auto it = stream_shards_.find(shard);
  if (it != stream_shards_.end() && it->second == work) return;
  Fail("range", fmt::format("shard {} was granted with {} offsets that the journal does not have",
                            ToString(shard), OffsetsOf(work.ranges)));
}

void Oracle::OnStreamCommitted(TopicPartition partition, uint64_t offset) {
  const PartSet missing =
      workload_->PartsOf(StreamWork{"topic", {{partition, 0, offset}}}) & ~committed_ & ~lost_;
  if (missing.none()) return;
  Fail("prefix", fmt::format("{} is said to be COMMITTED and is not",
                             workload_->NameOf(static_cast<uint32_t>(missing._Find_first()))));
}

void Oracle::OnBuilt(const ps::Partition& partition, const SimDisk::Marks& marks) {
  if (!marks.broken.empty()) return Fail("manifest", marks.broken);
  const PartSet& all = workload_->PartsIn(partition.id());
  for (size_t part = all._Find_first(); part < kPartsMax; part = all._Find_next(part)) {
    const float mark = MarkIn(partition, static_cast<uint32_t>(part));
    if (mark == (marks.parts.test(part) ? 1 : 0)) continue;
    Fail("restore", fmt::format("{}: {} times after a restore, its snapshot has it {} times",
                                workload_->NameOf(static_cast<uint32_t>(part)), mark,
                                marks.parts.test(part) ? 1 : 0));
  }
}

void Oracle::OnOwned(uint64_t process, const OwnedPartition& owned) {
  const auto [it, added] = serving_.try_emplace({owned.partition, owned.epoch}, process);
  if (it->second != process) {
    Fail("two-owners",
         fmt::format("partition {} at owner epoch {} is served by processes {} and {}",
                     owned.partition.value(), owned.epoch.value(), it->second, process));
  }
  if (owned.accepted != SnapshotNumber() &&
      !accepted_.contains({owned.partition, owned.accepted})) {
    Fail("not-accepted", fmt::format("a server takes snapshot {} of partition {} for accepted",
                                     ToString(owned.accepted), owned.partition.value()));
  }
}

void Oracle::CheckMeta(const MetaRecord& meta) {
  const bool grew = meta.incarnation >= meta_.incarnation && meta.done_seq >= meta_.done_seq &&
                    meta.commit_seq >= meta_.commit_seq && meta.map_version >= meta_.map_version &&
                    meta.restore_epoch >= meta_.restore_epoch &&
                    meta.newest_server_incarnation >= meta_.newest_server_incarnation;
  if (!grew) Fail("shrank", "a counter of the journal's meta record became smaller");
  meta_ = meta;
}

std::vector<EpochRecord> EpochsIn(const Mutation& mutation, const std::vector<DatasetPlan>& plan) {
  if (const auto* epoch = std::get_if<EpochRecord>(&mutation)) return {*epoch};
  std::vector<EpochRecord> epochs;
  const auto* whole = std::get_if<WholeEpochsRecord>(&mutation);
  if (whole == nullptr) return epochs;
  for (const auto& [begin, end] : whole->epochs.intervals()) {
    for (uint64_t number = begin; number < end; ++number) {
      epochs.push_back({whole->dataset, EpochIndex(static_cast<uint32_t>(number)), {}, 0, {}});
      epochs.back().committed.Add(0, plan[whole->dataset.value()].shards);
    }
  }
  return epochs;
}

void Oracle::CheckEpoch(const EpochRecord& record) {
  IntervalSet& before = committed_shards_[{record.dataset, record.epoch}];
  for (const auto& [begin, end] : before.intervals()) {
    for (uint64_t index = begin; index < end; ++index) {
      if (record.committed.Contains(index)) continue;
      const ShardId shard{record.dataset, record.epoch, ShardIndex(index)};
      Fail("uncommitted", fmt::format("shard {} was COMMITTED and is not", ToString(shard)));
    }
  }
  before = record.committed;
  for (const auto& [begin, end] : before.intervals()) {
    for (uint64_t index = begin; index < end; ++index) {
      const ShardId shard{record.dataset, record.epoch, ShardIndex(index)};
      committed_ |= PartsOf(shard);
    }
  }
}

void Oracle::CheckPartition(const PartitionRecord& record) {
  const PartitionEntry& entry = record.entry;
  OwnerEpoch& epoch = epochs_[record.partition];
  const OwnerEpoch before = epoch;
  if (entry.epoch < epoch) {
    Fail("shrank", fmt::format("the owner epoch of partition {} went from {} to {}",
                               record.partition.value(), epoch.value(), entry.epoch.value()));
  }
  epoch = entry.epoch;
  if (entry.owner_incarnation != ServerIncarnation()) {
    const std::pair owner(entry.owner, entry.owner_incarnation);
    const auto [it, added] = owners_.try_emplace({record.partition, entry.epoch}, owner);
    if (it->second != owner) {
      Fail("two-owners", fmt::format("owner epoch {} of partition {} was given to two servers",
                                     entry.epoch.value(), record.partition.value()));
    }
  }
  Chain& chain = chains_[record.partition.value()];
  if (chain.manifest == record.manifest) return;
  if (record.manifest.cut < chain.manifest.cut || record.manifest.number < chain.manifest.number) {
    Fail("shrank", fmt::format("the manifest of partition {} went from snapshot {} back to {}",
                               record.partition.value(), ToString(chain.manifest.number),
                               ToString(record.manifest.number)));
  }
  if (!record.manifest.files.empty() && record.manifest.files != chain.manifest.files &&
      disk_->EpochOf(record.manifest.files.back().name) < before) {
    Fail("former-owner",
         fmt::format("snapshot {} of partition {} counts, of an earlier owner epoch",
                     ToString(record.manifest.number), record.partition.value()));
  }
  chain.manifest = record.manifest;
  accepted_.emplace(record.partition, record.manifest.number);
  const SimDisk::Marks marks = disk_->MarksOf(chain.manifest.files);
  chain.parts = marks.parts;
  if (!marks.broken.empty()) Fail("manifest", marks.broken);
}

void Oracle::CheckKept(const KeptRecord& record) {
  const SimDisk::Marks marks = disk_->MarksOf(record.manifest.files);
  if (!marks.broken.empty()) Fail("manifest", marks.broken);
  PartSet until, after;
  for (const TrainBatch& batch : workload_->batches()) {
    (batch.shard.epoch <= record.epoch ? until : after) |= batch.parts;
  }
  const PartSet lacking = until & workload_->PartsIn(record.partition) & ~marks.parts;
  const PartSet wrong = (failed_.empty() ? lacking : PartSet()) | (after & marks.parts);
  if (wrong.none()) return;
  Fail("kept", fmt::format("{}: the weights kept of partition {} are not those at the end of epoch "
                           "{}",
                           workload_->NameOf(static_cast<uint32_t>(wrong._Find_first())),
                           record.partition.value(), record.epoch.value()));
}

void Oracle::CheckMissing(const PartSet& missing, PartitionId partition, const std::string& what) {
  if (missing.none()) return;
  Fail("not-in-manifest",
       fmt::format("{}: {}, but snapshot {} of the partition lacks it",
                   workload_->NameOf(static_cast<uint32_t>(missing._Find_first())), what,
                   ToString(chains_[partition.value()].manifest.number)));
}

void Oracle::CheckCovered(PartitionId partition, const DurableState& state) {
  const Chain& chain = chains_[partition.value()];
  const PartSet lacking = workload_->PartsIn(partition) & ~chain.parts;
  CheckMissing(committed_ & lacking, partition, "its shard is COMMITTED");
  for (const auto& [seq, record] : state.done) {
    if (seq > chain.manifest.cut) break;
    // Of a group: a later replay brings the parts.
    if (record.lacks_parts || record.pushed_again > chain.manifest.cut) continue;
    CheckMissing(PartsOf(record.done.shard) & lacking, partition,
                 fmt::format("its shard is DONE {}, the cut is {}", seq.value(),
                             chain.manifest.cut.value()));
  }
}

void Oracle::CheckFailures(const FailureRecord& record) {
  std::set<LeaseToken>& happened = failures_[record.shard];
  std::set<LeaseToken>& left = left_[record.shard];
  if (record.lost) lost_ |= PartsOf(record.shard);
  if (record.failed) {
    failed_.insert(record.shard);
    failed_epochs_.insert(record.shard.epoch);
  } else if (failed_.erase(record.shard) > 0) {
    happened.clear();  // it is tried again, and no worker holds it
    left.clear();
  }
  if (record.failures > happened.size() + left.size() / HandBacks::kWithoutProgressMax) {
    Fail("charged-twice",
         fmt::format("shard {} was charged {} failures, under {} leases one "
                     "happened, under {} it was left",
                     ToString(record.shard), record.failures, happened.size(), left.size()));
  }
  if (record.failures > 0 && !happened.contains(record.charged) && !left.contains(record.charged)) {
    Fail("charged", fmt::format("shard {} was charged for lease {}, under which nothing failed",
                                ToString(record.shard), ToString(record.charged)));
  }
}

void Oracle::CheckDoneSeq(const DoneRecord& record) {
  // A group writes the record again when a restore has taken parts of the shard, or a replay has
  // brought them back.
  const bool again = record.lacks_parts || record.pushed_again != DoneSeq();
  const auto [known, added] = done_.try_emplace(record.done.seq, record.done.shard);
  if (added ? record.done.seq <= newest_done_ : !again || known->second != record.done.shard) {
    Fail("shrank", fmt::format("shard {} is DONE {}, after {}", ToString(record.done.shard),
                               record.done.seq.value(), newest_done_.value()));
  }
  newest_done_ = std::max(newest_done_, record.done.seq);
}

void Oracle::OnDurableWithoutServers(std::span<const Mutation> mutations) {
  for (const Mutation& mutation : mutations) {
    if (const auto* meta = std::get_if<MetaRecord>(&mutation)) CheckMeta(*meta);
    if (const auto* failure = std::get_if<FailureRecord>(&mutation)) CheckFailures(*failure);
    if (const auto* done = std::get_if<DoneRecord>(&mutation)) CheckDoneSeq(*done);
  }
}

void Oracle::OnDurable(std::span<const Mutation> mutations, const DurableState& state) {
  bool committed = false;
  std::set<EpochIndex> evaluated;
  std::set<PartitionId> changed;
  for (const Mutation& mutation : mutations) {
    if (const auto* cut = std::get_if<StreamShardRecord>(&mutation)) CheckStreamShard(*cut);
    if (const auto* meta = std::get_if<MetaRecord>(&mutation)) CheckMeta(*meta);
    for (const EpochRecord& epoch : EpochsIn(mutation, workload_->plan())) {
      CheckEpoch(epoch);
      committed = true;
      if (Workload::IsEvaluate({epoch.dataset, {}, {}})) evaluated.insert(epoch.epoch);
    }
    if (const auto* partition = std::get_if<PartitionRecord>(&mutation)) {
      CheckPartition(*partition);
      changed.insert(partition->partition);
    }
    if (const auto* failure = std::get_if<FailureRecord>(&mutation)) CheckFailures(*failure);
    if (const auto* kept = std::get_if<KeptRecord>(&mutation)) CheckKept(*kept);
    if (const auto* done = std::get_if<DoneRecord>(&mutation)) {
      CheckDoneSeq(*done);
    }
  }
  for (const EpochIndex pass : evaluated) CheckEvaluated(pass);
  for (uint32_t p = 0; p < workload_->partitions(); ++p) {
    if (committed || changed.contains(PartitionId(p))) CheckCovered(PartitionId(p), state);
  }
}

void Oracle::OnDone(const DoneRecord& record, const Current& current) {
  const PartSet parts = PartsOf(record.done.shard);
  for (size_t part = parts._Find_first(); part < kPartsMax; part = parts._Find_next(part)) {
    const PartitionId id(static_cast<uint32_t>(part) % workload_->partitions());
    const ps::Partition* partition = current(id);
    const bool in = partition == nullptr ? chains_[id.value()].parts.test(part)
                                         : MarkIn(*partition, static_cast<uint32_t>(part)) == 1;
    if (in) continue;
    Fail("done-not-in",
         fmt::format("{}: its shard became DONE {}, but the partition's {} lacks it",
                     workload_->NameOf(static_cast<uint32_t>(part)), record.done.seq.value(),
                     partition == nullptr ? "snapshot" : "owner"));
  }
}

void Oracle::OnAnswer(const MasterCore& core, const DurableState& state, bool idle) {
  const bool synced = idle && state.meta.has_value() &&
                      state.meta->incarnation == core.incarnation() &&
                      state.meta->done_seq == core.ledger().done_seq() &&
                      state.meta->commit_seq == core.ledger().commit_seq() &&
                      state.meta->map_version == core.partitions().version() &&
                      state.meta->restore_epoch == core.partitions().restore_epoch();
  if (!synced) Fail("unsynced", "an answer left before the journal held what it says");
}

void Oracle::OnGrant(const std::string& worker, uint64_t incarnation, const ShardGrant& grant,
                     const MasterCore& core) {
  // Of this master: another one may grant meanwhile.
  const auto larger = grants_.upper_bound(grant.token);
  const bool newest =
      larger == grants_.end() || larger->first.incarnation() != grant.token.incarnation();
  const auto [it, added] =
      grants_.try_emplace(grant.token, Granted{grant.shard, worker, incarnation});
  if (added && !newest) {
    Fail("token", fmt::format("token {} was granted after a larger one", ToString(grant.token)));
  }
  if (added) {
    const EpochIndex epoch =
        Workload::IsPredict(grant.shard) ? EpochIndex(Workload::kEpochs - 1) : grant.shard.epoch;
    Workload::Trains(grant.shard) ? CheckEvaluatedBefore(epoch, core)
                                  : CheckTrainedFor(epoch, core);
  }
  if (it->second.shard != grant.shard || it->second.worker != worker ||
      it->second.incarnation != incarnation) {
    Fail("token",
         fmt::format("token {} was granted for shard {} and for shard {}", ToString(grant.token),
                     ToString(it->second.shard), ToString(grant.shard)));
  }
}

void Oracle::OnRows(const BatchRows& wanted, size_t key, std::span<const float> row) {
  const std::vector<float> initial = workload_->Initial(wanted.table, wanted.keys[key]);
  const PartitionId partition =
      PartitionOf(wanted.table, wanted.keys[key], workload_->partitions());
  const Workload::Rows& rows = workload_->expected(partition);
  const auto end = rows.find({wanted.table, wanted.keys[key]});
  for (uint32_t column = 0; column < wanted.dim; ++column) {
    const float most = end == rows.end() ? initial[column] : end->second[column];
    // Whole gradients, but the late table's beginnings are fractions that round as the sum grows.
    const float pushed = row[column] - initial[column];
    const bool whole = std::abs(pushed - std::round(pushed)) < 1e-3f;
    if (whole && pushed > -1e-3f && row[column] < most + 1e-3f) continue;
    Fail("rows",
         fmt::format("row {} of table {} was pulled as {}: it begins as {} and ends as {}",
                     wanted.keys[key], wanted.table.value(), row[column], initial[column], most));
  }
}

void Oracle::OnVersion(const VersionName& name, std::vector<float> rows) {
  const auto [known, added] = versions_.try_emplace(name, std::move(rows));
  if (added || known->second == rows) return;
  Fail("version",
       fmt::format("partition {}, owner epoch {}: version {} of table {} is of two "
                   "contents",
                   name.partition.value(), name.epoch.value(), name.version, name.table.value()));
}

void Oracle::OnHeld(const VersionName& name, OwnerEpoch asked, const std::vector<float>& rows) {
  const auto known = versions_.find(name);
  const bool others = known != versions_.end() && known->second != rows;
  if (!others && name.epoch >= asked) return;
  Fail("version",
       fmt::format("partition {}: rows of table {} were pulled as version {} of owner epoch {}, "
                   "asked for under {}{}",
                   name.partition.value(), name.table.value(), name.version, name.epoch.value(),
                   asked.value(), others ? ": they are not" : ""));
}

void Oracle::CheckRows(const ps::Partition& partition, const std::string& what) {
  const Workload::Rows& rows = workload_->expected(partition.id());
  for (const auto& [name, expected] : rows) {
    std::vector<float> row(expected.size());
    const absl::Status pulled = partition.Pull(name.first, {&name.second, 1}, row);
    bool same = pulled.ok();
    for (size_t i = 0; same && i < row.size(); ++i) same = std::abs(row[i] - expected[i]) < 1e-3f;
    if (same) continue;
    return Fail("end-rows", fmt::format("{}: row {} of table {} in partition {} is {}, not {}",
                                        what, name.second, name.first.value(),
                                        partition.id().value(), row[0], expected[0]));
  }
  if (partition.sizes().rows != rows.size()) {
    Fail("end-rows", fmt::format("{}: partition {} has {} rows, not {}", what,
                                 partition.id().value(), partition.sizes().rows, rows.size()));
  }
}

void Oracle::CheckEpochAtEnd(DatasetId dataset, EpochIndex epoch, const DurableState& state) {
  const bool stream = dataset == kStreamDataset;
  const uint64_t shards =
      stream ? stream_shards_.size() : workload_->plan()[dataset.value()].shards;
  ShardMetrics expected;
  if (stream) {
    for (uint32_t p = 0; p < SimTopic::kPartitions; ++p) {
      Merge(&expected,
            Workload::MetricsOf(StreamWork{"topic", {{TopicPartition(p), 0, SimTopic::kOffsets}}}));
    }
  } else {
    expected = Workload::MetricsOfEpoch(dataset, epoch);
  }
  const auto found = state.epochs.find({dataset, epoch});
  const auto whole = state.whole_epochs.find(dataset);
  if (found == state.epochs.end() && whole != state.whole_epochs.end() &&
      whole->second.epochs.Contains(epoch.value())) {
    return CheckThinned(whole->second, expected);
  }
  if (found == state.epochs.end() || found->second.committed.count() != shards) {
    return Fail("end-ledger", fmt::format("epoch {} of dataset {} is not COMMITTED as a whole",
                                          epoch.value(), dataset.value()));
  }
  const ShardMetrics& merged = found->second.metrics;
  if (merged.records != expected.records || merged.means != expected.means ||
      merged.aucs != expected.aucs || merged.rejected_records != expected.rejected_records ||
      found->second.records_committed != expected.records) {
    Fail("end-metrics",
         fmt::format("metrics of epoch {} of dataset {} were not merged once: "
                     "{} records instead of {}",
                     epoch.value(), dataset.value(), merged.records, expected.records));
  }
}

void Oracle::CheckThinned(const WholeEpochsRecord& whole, const ShardMetrics& expected) {
  // There are two epochs, and the newest one is known.
  if (whole.rejected_records == expected.rejected_records) return;
  Fail("end-metrics", fmt::format("{} rejected records of thinned out epochs instead of {}",
                                  whole.rejected_records, expected.rejected_records));
}

void Oracle::OnEnd(const MasterCore& core, const DurableState& state, const Current& current) {
  for (uint32_t dataset = 0; dataset < workload_->plan().size(); ++dataset) {
    for (uint32_t epoch = 0; epoch < Workload::EpochsOf(DatasetId(dataset)); ++epoch) {
      CheckEpochAtEnd(DatasetId(dataset), EpochIndex(epoch), state);
    }
  }
  if (!state.stream_shards.empty()) {
    Fail("end-ledger", "ranges that are COMMITTED are still in the journal");
  }
  CheckTablesAtEnd(core, current);
  CheckPredicted();
  // The evaluation says the same of every epoch: the first is the best one, and the last a
  // multiple. Shards that were FAILED at an epoch's end may have said something else.
  const bool keeps = core.options().epoch_ends.any() && failed_epochs_.empty();
  for (uint32_t epoch = 0; keeps && epoch < Workload::kEpochs; ++epoch) {
    const auto kept = state.kept.find(EpochIndex(epoch));
    if (kept == state.kept.end() || kept->second.size() != workload_->partitions()) {
      return Fail("kept", fmt::format("the weights of epoch {} are not kept", epoch));
    }
    for (const auto& [id, manifest] : kept->second) CheckKept({EpochIndex(epoch), id, manifest});
  }
}

void Oracle::CheckTablesAtEnd(const MasterCore& core, const Current& current) {
  for (uint32_t p = 0; p < workload_->partitions(); ++p) {
    const PartitionId id(p);
    const ps::Partition* served = current(id);
    if (served == nullptr) return Fail("end-served", fmt::format("partition {} is not served", p));
    CheckRows(*served, "at its owner");
    // The floor of a group stays at its last step.
    if (!core.options().group.has_value() && served->sizes().window_shards != 0) {
      Fail("end-window", fmt::format("partition {} still remembers {} shards, all are COMMITTED", p,
                                     served->sizes().window_shards));
    }
    // The rows that an export, or another run, would read.
    auto images = const_cast<SimDisk*>(disk_)->Read(id, core.partitions().manifest(id));
    ps::Partition restored(id, kJobSeed);
    const absl::Status status =
        images.ok() ? restored.Restore(core.partitions().manifest(id).number, *images)
                    : images.status();
    if (!status.ok()) return Fail("end-manifest", std::string(status.message()));
    CheckRows(restored, "in its snapshots");
  }
}

}  // namespace muster::sim
