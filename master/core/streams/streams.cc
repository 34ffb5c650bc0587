#include "master/core/streams/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace muster {
namespace {

/// How long a log may end before offsets that were cut: a new leader may reach them a little later.
constexpr std::chrono::seconds kTruncatedMax{30};
/// A topic counts as gone after this many looks that did not find it, over this much time. Brokers
/// also report an existing topic as missing for a moment: while leaders are elected, or if the
/// broker that is asked has just started.
constexpr uint32_t kGoneLooks = 3;
constexpr std::chrono::seconds kGoneTime{2};
/// How long a dataset may begin beyond the end of a log: a new leader may reach it a little later.
constexpr std::chrono::seconds kBeyondMax{10};
/// Retention is near if only this share of the log, or of the time for which records are kept, lies
/// before the oldest record that is not COMMITTED. It is far again at twice this share.
constexpr uint64_t kNearLogShare = 10;
constexpr int kNearTimeShare = 2;

/// What is gone of a shard, as text.
std::string GoneText(const StreamShard& cut, const std::string& topic,
                     const std::map<TopicPartition, uint64_t>& log_begins) {
  std::string text;
  size_t others = 0;
  for (const OffsetRange& range : cut.ranges) {
    const uint64_t log_begin = log_begins.at(range.partition);
    if (range.begin >= log_begin) continue;
    if (!text.empty()) {
      ++others;
      continue;
    }
    text = fmt::format(
        "offsets [{}, {}) of topic '{}', partition {}, are gone: its log begins at offset {}",
        range.begin, std::min(range.end, log_begin), topic, range.partition.value(), log_begin);
  }
  if (others > 0) text += fmt::format(" (and so for {})", CountText(others, "other partition"));
  return text + ", because retention or a user has deleted records";
}

/// A log that ends before offsets that the dataset already has, and why.
struct Truncation {
  std::string what, why;
};
Truncation TruncationOf(const DatasetPlan& plan, const StreamTable::Progress& partition) {
  const StreamPosition& position = partition.position;
  const bool cut = position.cut > position.begin;
  return {fmt::format("dataset '{}': the log of topic '{}', partition {}, ends before {}",
                      plan.name, plan.stream->topic, position.partition.value(),
                      cut ? "offsets that are already cut into shards"
                          : fmt::format("offset {}, where the dataset begins", position.begin)),
          fmt::format("the topic was deleted and created again, or its brokers have lost records{}",
                      cut ? "" : ", or kafka.start names an offset that it never had")};
}

}  // namespace

void Streams::See(const StreamLook& look, StepTime at) {
  const DatasetId dataset = look.dataset;
  if (life_->over() || !books_->ledger.streams().Grows(dataset)) return;
  StreamTold& told = told_[dataset];
  TellSideTroubles(look, &told, at);
  TellError(look, &told, at);
  if (look.beyond && !told.beyond_since.has_value()) told.beyond_since = at.now;
  if (look.fatal || (look.beyond && at.now - *told.beyond_since >= kBeyondMax)) {
    return life_->End(JobState::kFailed,
                      fmt::format("dataset '{}': {}", books_->NameOf(dataset), look.error), at);
  }
  if (look.gone) CountGone(dataset, &told, at);
  if (!look.error.empty()) return;
  told.gone_looks = 0;
  told.beyond_since.reset();
  const size_t known = books_->ledger.streams().ProgressOf(dataset).size();
  if (!Check(look, &told, at)) return;
  TellNewPartitions(look, known, at);
  LoseRanges(dataset, at);
  CheckRetention(look, &told, at);
  Cut(dataset, at);
  life_->CheckEnd(at);
}

void Streams::TellSideTroubles(const StreamLook& look, StreamTold* told, StepTime at) {
  const DatasetPlan& plan = PlanOf(look.dataset);
  if (look.group_trouble.empty() != told->group_trouble.empty()) {
    told->group_trouble = look.group_trouble;
    books_->Say(
        at,
        look.group_trouble.empty() ? MasterEventKind("group-told")
                                   : MasterEventKind("group-untold"),
        "",
        look.group_trouble.empty()
            ? fmt::format("dataset '{}': its offsets are committed to the brokers again", plan.name)
            : fmt::format("dataset '{}': its offsets cannot be committed to the brokers: {}. Lag "
                          "tools show too much. Training continues, and nothing is lost",
                          plan.name, look.group_trouble));
  }
  if (look.dead_letter_trouble.empty() != told->dead_letter_trouble.empty()) {
    told->dead_letter_trouble = look.dead_letter_trouble;
    books_->Say(
        at,
        look.dead_letter_trouble.empty() ? MasterEventKind("dead-letters-writable")
                                         : MasterEventKind("dead-letters-held"),
        "",
        look.dead_letter_trouble.empty()
            ? fmt::format("dataset '{}': the topic for rejected records can be written again",
                          plan.name)
            : fmt::format("dataset '{}': rejected records cannot be written: {}. Shards with "
                          "such records are handed back and run again until that works",
                          plan.name, look.dead_letter_trouble));
  }
}

void Streams::TellError(const StreamLook& look, StreamTold* told, StepTime at) {
  if (look.fatal || look.error.empty() == told->error.empty()) return;
  const DatasetPlan& plan = PlanOf(look.dataset);
  told->error = look.error;
  if (!look.error.empty()) {
    books_->Say(at, "stream-unreachable", "",
                fmt::format("dataset '{}', topic '{}': {}. Nothing is lost: shards that were read "
                            "continue, the others wait",
                            plan.name, plan.stream->topic, look.error));
  } else {
    books_->Say(
        at, "stream-reachable", "",
        fmt::format("dataset '{}': topic '{}' can be read again{}", plan.name, plan.stream->topic,
                    told->gone_looks > 0
                        ? ". The brokers had reported that it does not exist. If it was created "
                          "again, begin a new job in another spec.stateDirectory"
                        : ""));
  }
}

void Streams::CountGone(DatasetId dataset, StreamTold* told, StepTime at) {
  if (told->gone_looks++ == 0) told->gone_since = at.now;
  if (told->gone || told->gone_looks < kGoneLooks || at.now - told->gone_since < kGoneTime) {
    return;
  }
  told->gone = true;
  if (books_->ledger.streams().ProgressOf(dataset).empty()) return;  // there was no look yet
  const DatasetPlan& plan = PlanOf(dataset);
  books_->Say(
      at, "stream-gone", "",
      fmt::format("dataset '{}': the brokers still report that there is no topic '{}'. The job "
                  "waits for it. If it comes back and ends before offsets that are already cut "
                  "into shards, it was created again, and the job fails",
                  plan.name, plan.stream->topic));
}

bool Streams::Check(const StreamLook& look, StreamTold* told, StepTime at) {
  const DatasetPlan& plan = PlanOf(look.dataset);
  const std::string& cluster = books_->ledger.streams().cluster(look.dataset);
  if (!cluster.empty() && !look.cluster.empty() && cluster != look.cluster) {
    life_->End(
        JobState::kFailed,
        fmt::format("dataset '{}': the brokers belong to cluster {}, but the job began on cluster "
                    "{}, whose offsets are different. Correct the brokers' addresses, or begin a "
                    "new job in another spec.stateDirectory",
                    plan.name, look.cluster, cluster),
        at);
    return false;
  }
  if (cluster.empty() && !look.cluster.empty()) {
    ledger_->SetStreamCluster(look.dataset, look.cluster);
  }
  ledger_->TakeLook(look.dataset, look.partitions, at.now, at.wall);
  const std::vector<TopicPartition> truncated = books_->ledger.streams().Truncated(look.dataset);
  if (!truncated.empty()) return CheckTruncated(look.dataset, truncated, told, at);
  told->gone = false;
  TellGrownAgain(look.dataset, told, at);
  return true;
}

bool Streams::CheckTruncated(DatasetId dataset, const std::vector<TopicPartition>& truncated,
                             StreamTold* told, StepTime at) {
  constexpr std::string_view kAnew =
      "The job's weights come from the former log; begin a new job in another "
      "spec.stateDirectory";
  std::optional<Truncation> truncation;
  for (const StreamTable::Progress& partition : books_->ledger.streams().ProgressOf(dataset)) {
    const TopicPartition id = partition.position.partition;
    if (!std::ranges::binary_search(truncated, id)) continue;
    if (!truncation.has_value()) truncation = TruncationOf(PlanOf(dataset), partition);
    const auto [least, first] = told->truncated_at.try_emplace(id, partition.stable_end);
    least->second = std::min(least->second, partition.stable_end);
  }
  MUSTER_CHECK(truncation.has_value());
  const auto& [what, why] = *truncation;
  // The log may have grown again by the next look.
  if (told->gone) {
    life_->End(JobState::kFailed,
               fmt::format("{}: the topic was deleted and created again. {}", what, kAnew), at);
    return false;
  }
  if (!told->truncated_since.has_value()) {
    told->truncated_since = at.now;
    books_->Say(at, "stream-truncated", "",
                fmt::format("{}: {}. If this lasts for {} s, the job fails", what, why,
                            kTruncatedMax.count()));
  }
  if (at.now - *told->truncated_since < kTruncatedMax) return true;
  life_->End(JobState::kFailed, fmt::format("{}: {}. {}", what, why, kAnew), at);
  return false;
}

void Streams::TellGrownAgain(DatasetId dataset, StreamTold* told, StepTime at) {
  if (!told->truncated_since.has_value()) return;
  told->truncated_since.reset();
  const DatasetPlan& plan = PlanOf(dataset);
  for (const StreamTable::Progress& partition : books_->ledger.streams().ProgressOf(dataset)) {
    const auto least = told->truncated_at.find(partition.position.partition);
    if (least == told->truncated_at.end()) continue;
    books_->Say(
        at, "stream-grown-again", "",
        fmt::format(
            "dataset '{}': the log of topic '{}', partition {}, had ended at offset {}, but "
            "reaches offset {} again, up to which it is cut into shards. Either its leader "
            "was behind for a while, or its brokers have lost records. In the second case, "
            "other records may have taken offsets before {}, and these are not trained on. "
            "If unclean.leader.election.enable is set, look at the brokers' logs",
            plan.name, plan.stream->topic, partition.position.partition.value(), least->second,
            partition.position.cut, partition.position.cut));
  }
  told->truncated_at.clear();
}

void Streams::TellNewPartitions(const StreamLook& look, size_t known, StepTime at) {
  const std::vector<StreamTable::Progress> progress =
      books_->ledger.streams().ProgressOf(look.dataset);
  if (progress.size() == known) return;
  const DatasetPlan& plan = PlanOf(look.dataset);
  uint64_t waiting = 0;
  for (const StreamTable::Progress& partition : progress) waiting += partition.lag.value_or(0);
  books_->Say(
      at, "stream-partitions", "",
      fmt::format("dataset '{}': topic '{}' has {}{}; {} still to be read", plan.name,
                  plan.stream->topic, CountText(progress.size(), "partition"),
                  known == 0 ? "" : fmt::format(", {} more than before", progress.size() - known),
                  CountText(waiting, "offset is", "offsets are")));
}

void Streams::LoseRanges(DatasetId dataset, StepTime at) {
  // A TODO shard may still have a lease from before the restart that its worker will re-assert.
  if (leasing_->grace().on()) return;
  std::map<TopicPartition, uint64_t> log_begins;
  for (const StreamTable::Progress& partition : books_->ledger.streams().ProgressOf(dataset)) {
    log_begins[partition.position.partition] = partition.log_begin;
  }
  for (const ShardId& shard : books_->ledger.streams().BehindLog(dataset)) {
    // A leased shard may have been read in time. A DONE shard needs its data only if it is
    // replayed. A shard may be FAILED because a worker saw first that its records are gone.
    const ShardState state = books_->ledger.queue().StateOf(shard);
    if (state != ShardState::kTodo && state != ShardState::kFailed) continue;
    const DatasetPlan& plan = PlanOf(dataset);
    const std::string reason =
        GoneText(*books_->ledger.streams().Find(shard), plan.stream->topic, log_begins);
    ledger_->FailLost(shard, reason);
    failures_->Settle(shard);
    const bool failed = state == ShardState::kFailed;
    books_->Say(at, failed ? MasterEventKind("shard-lost") : MasterEventKind("shard-failed"), "",
                fmt::format("shard {} of dataset '{}' is FAILED{}: {}", ToString(shard), plan.name,
                            failed ? " already" : "", reason));
  }
}

void Streams::CheckRetention(const StreamLook& look, StreamTold* told, StepTime at) {
  const DatasetPlan& plan = PlanOf(look.dataset);
  for (const StreamTable::Progress& partition : books_->ledger.streams().ProgressOf(look.dataset)) {
    const TopicPartition id = partition.position.partition;
    if (!partition.seen) continue;
    const uint64_t began = told->log_begins.try_emplace(id, partition.log_begin).first->second;
    const bool near = told->near.contains(id);
    const uint64_t more = near ? 2 : 1;
    const uint64_t kept =
        partition.stable_end - std::min(partition.stable_end, partition.log_begin);
    const uint64_t before =
        partition.committed - std::min(partition.committed, partition.log_begin);
    // If the begin of the log does not move, nothing is lost, however near it is.
    const bool by_log =
        *partition.lag > 0 && partition.log_begin > began && before * kNearLogShare < kept * more;
    const WallTime age = at.wall - partition.oldest.value_or(at.wall);
    // Not in nanoseconds, which reach only to 292 years.
    const bool by_time = look.retention.has_value() && partition.oldest.has_value() &&
                         std::chrono::floor<std::chrono::milliseconds>(age) >=
                             *look.retention / (kNearTimeShare * static_cast<int>(more));
    if (by_log || by_time) {
      if (near) continue;
      told->near.insert(id);
      books_->Say(
          at, "retention-near", "",
          fmt::format(
              "dataset '{}': offsets from {} on of topic '{}', partition {}, are not "
              "COMMITTED, and its log already begins at {}{}. Add workers, or keep records "
              "longer. Otherwise records are lost and their shards are FAILED",
              plan.name, partition.committed, plan.stream->topic, id.value(), partition.log_begin,
              look.retention.has_value()
                  ? fmt::format(" and keeps records for {} s", look.retention->count() / 1'000)
                  : ""));
    } else if (near) {
      told->near.erase(id);
      books_->Say(at, "retention-far", "",
                  fmt::format("dataset '{}': retention no longer threatens records of topic '{}', "
                              "partition {}",
                              plan.name, plan.stream->topic, id.value()));
    }
  }
}

void Streams::Cut(DatasetId dataset, StepTime at) {
  if (life_->state() != JobState::kRunning) return;
  bool lost = false;
  for (const StreamTable::NewShard& added : ledger_->CutStream(dataset, at.now)) {
    lost |= added.lost;
  }
  if (lost) LoseRanges(dataset, at);
}

void Streams::Tick(StepTime at) {
  if (life_->state() != JobState::kRunning || books_->ledger.streams().empty()) return;
  for (const DatasetId dataset : books_->ledger.streams().datasets()) Cut(dataset, at);
  life_->CheckEnd(at);
}

const StreamTold* Streams::ToldOf(DatasetId dataset) const {
  const auto told = told_.find(dataset);
  return told == told_.end() ? nullptr : &told->second;
}

void Streams::TakeDelays(const DatasetDelays& told, const DelayHistogram* before, TimePoint now) {
  told_[told.dataset].delays.Hear(before, told.delays, now);
}

}  // namespace muster
