#include "master/core/job_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace muster {
JobLife::JobLife(const Books* books, Leasing* leasing, EpochEnds* epoch_ends)
    : books_(books),
      leasing_(leasing),
      epoch_ends_(epoch_ends),
      gate_(books->options.limits, books->options.failed_shards_max) {}

void JobLife::Resume(const MetaRecord& meta, TimePoint now) {
  state_ = meta.state;
  reason_ = meta.reason;
  if (state_ == JobState::kDraining) drain_began_ = now;
  if (over()) leasing_->Close();
}

JobDirective JobLife::Directive() const {
  switch (state_) {
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
      return JobDirective::kEnd;
    case JobState::kDraining:
    case JobState::kDrained:
      return JobDirective::kDrain;
    default:
      return JobDirective::kWork;
  }
}

bool JobLife::NeedsSnapshots() const {
  const ShardQueue& queue = books_->ledger.queue();
  if (queue.done().empty() || over()) return false;
  const bool nothing_trains = leasing_->table().train_count() == 0;
  if (state_ == JobState::kDraining) return nothing_trains;
  if (gate_.too_much_done()) return true;
  if (gate_.too_many_failures()) return nothing_trains;
  // A stream has nothing to lease while its topic is slow. That is not its end.
  return !queue.AnyOpen() && nothing_trains && !queue.Peek().has_value();
}

void JobLife::End(JobState state, std::string_view reason, StepTime at) {
  MUSTER_CHECK(!over() && IsTerminal(state));
  state_ = state;
  reason_ = ValidUtf8(reason, EventLog::kTextBytesMax);
  // Work that a later restore could undo does not count as trained.
  MUSTER_CHECK(state != JobState::kSucceeded || books_->ledger.queue().Finished());
  leasing_->Close();
  books_->Say(at, "job-ended", "",
              reason_.empty() ? std::string(ToString(state))
                              : fmt::format("{}: {}", ToString(state), reason_));
}

bool JobLife::AllSettled() const {
  // A DONE shard is not finished, because a restore may undo it.
  return books_->ledger.queue().Finished();
}

void JobLife::CheckEnd(StepTime at) {
  if (over()) return;
  epoch_ends_->Check(at);
  const ShardQueue& queue = books_->ledger.queue();
  if (AllSettled()) {
    if (queue.failed_count() == 0) return End(JobState::kSucceeded, epoch_ends_->stop_text(), at);
    return End(JobState::kFailed, FailedText(), at);
  }
  const bool idle =
      leasing_->table().size() == 0 && queue.done().empty() && !leasing_->grace().on();
  if (gate_.too_many_failures() && state_ == JobState::kRunning && idle) {
    return End(JobState::kFailed, "too many failures to continue: " + FailedText(), at);
  }
  if (state_ == JobState::kDraining && idle) End(JobState::kDrained, "", at);
}

std::string JobLife::FailedText() const {
  constexpr size_t kShownMax = 5;
  const std::vector<ShardId> shards = books_->ledger.queue().FailedShards();
  std::string text = fmt::format("{} FAILED (`muster run --retry-failed` tries again):",
                                 CountText(shards.size(), "shard"));
  for (size_t i = 0; i < shards.size() && i < kShownMax; ++i) {
    const FailureRecord* record = books_->ledger.FindFailure(shards[i]);
    text += fmt::format(
        "{} {} of dataset '{}': {}", i == 0 ? "" : ";", ToString(shards[i]),
        books_->NameOf(shards[i].dataset),
        record == nullptr || record->reasons.empty() ? "no reason" : record->reasons.back());
  }
  if (shards.size() > kShownMax)
    text += fmt::format("; and {} more", CountText(shards.size() - kShownMax));
  return text;
}

void JobLife::CheckRejects(StepTime at) {
  const uint64_t rejected = books_->ledger.rejected_records();
  const uint64_t rejected_max = books_->options.rejected_records_max;
  if (over() || rejected <= rejected_max) return;
  const auto& events = books_->events().events();
  const auto sample = std::find_if(events.rbegin(), events.rend(), [](const auto& event) {
    return event.second.kind == kRecordRejected.word();
  });
  End(JobState::kFailed,
      fmt::format(
          "{} {} rejected, but spec.training.rejectedRecordsMax is {}{}. To continue without "
          "these records, raise the limit and run again. To train with corrected data, "
          "begin again with another spec.stateDirectory",
          CountText(rejected), rejected == 1 ? "record was" : "records were",
          CountText(rejected_max),
          sample == events.rend() ? "" : "; the last: " + sample->second.text),
      at);
}

void JobLife::CheckLimits(StepTime at) {
  const Ledger& ledger = books_->ledger;
  for (; drops_told_ < ledger.totals().metrics_dropped().size(); ++drops_told_) {
    const auto& [dataset, epoch] = ledger.totals().metrics_dropped()[drops_told_];
    books_->Say(at, "metrics-dropped", "",
                fmt::format("epoch {} of dataset '{}' has {} metrics, which is the limit. Metrics "
                            "with other names are dropped",
                            epoch.value() + 1, books_->NameOf(dataset),
                            books_->options.limits.metric_names));
  }
  if (over()) return;
  auto news =
      gate_.Look({ledger.done_bytes(), ledger.failure_bytes(), ledger.shards_failed_by_trainers()});
  if (news.has_value()) books_->Say(at, news->kind, "", news->text);
}

void JobLife::Drain(StepTime at) {
  if (state_ != JobState::kRunning) return;
  state_ = JobState::kDraining;
  drain_began_ = at.now;
  books_->Say(at, "drain-began", "", CountText(leasing_->table().size(), "lease") + " outstanding");
  CheckEnd(at);
}

absl::Status JobLife::Cancel(const CancelOptions& options, StepTime at) {
  if (!over()) {
    End(options.as_failed ? JobState::kFailed : JobState::kCancelled, options.reason, at);
    return absl::OkStatus();
  }
  if (options.as_failed || state_ == JobState::kCancelled) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the job has ended ({}{}{}), so it cannot be cancelled", ToString(state_),
                  reason_.empty() ? "" : ": ", reason_));
}

void JobLife::Tick(StepTime at) {
  if (state_ != JobState::kDraining) return;
  MUSTER_CHECK(drain_began_.has_value());
  const auto waited = at.now - *drain_began_;
  if (waited >= books_->options.drain_timeout && leasing_->table().size() > 0) {
    books_->Say(at, "drain-timeout", "",
                fmt::format("{} leases were ended; their shards run again on resume",
                            leasing_->table().size()));
    leasing_->EndAll();
  }
  // Without servers, there can be no snapshots. DONE shards run again on resume.
  if (waited >= 2 * books_->options.drain_timeout && !books_->ledger.queue().done().empty()) {
    End(JobState::kDrained, "", at);
  }
  CheckEnd(at);
}

}  // namespace muster
