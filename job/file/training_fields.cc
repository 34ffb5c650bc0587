#include <limits>

#include "job/file/field_builder.h"

namespace muster::job_file {
namespace {

void AddEpochEnds(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  using Training = JobSpec::Training;
  fields->push_back(Default(
      Make("spec.training.keep.best", Form::kText, {}, kAny,
           Job(&JobSpec::training, &Training::keep_best),
           "Keeps the weights of the epoch in which this metric was best so far. METRIC, or "
           "DATASET/METRIC if there are several evaluate datasets. Its name must say which values "
           "are better (`auc`, `loss`). With this, `every` or `stopEarly`, an epoch begins only "
           "when the one before is committed and evaluated."),
      "none"));
  fields->push_back(Make("spec.training.keep.every", Form::kWhole, {0, 1'000'000}, kAny,
                         Job(&JobSpec::training, &Training::keep_every),
                         "Keeps the weights of every Nth epoch. 0: none."));
  fields->push_back(Make("spec.training.keep.last", Form::kWhole, {1, 100}, kAny,
                         Job(&JobSpec::training, &Training::keep_last),
                         "How many of the epochs of `every` are kept, the newest ones."));
  fields->push_back(Choice(
      Make("spec.training.evaluation", Form::kChoice, {}, kAny,
           Job(&JobSpec::training, &Training::evaluation),
           "`atEpochEnd`: an evaluation sees all steps of its epoch and none of the next, which "
           "begins after it. `overlap`: the next epoch begins while the last shards of the one "
           "before are trained and evaluated. That saves the wait, but the metric is one of later "
           "weights."),
      {"atEpochEnd", "overlap"}));
  fields->push_back(
      Default(Make("spec.training.warmStart", Form::kPath, {}, kAny,
                   Job(&JobSpec::training, &Training::warm_start),
                   "A folder that `muster export` wrote. Tables and dense tensors start with its "
                   "weights, unless the trainer names another folder for them. Each of them must "
                   "be in it. Every worker and server must be able to read it."),
              "none"));
  fields->push_back(
      Default(Make("spec.training.stopEarly.metric", Form::kText, {}, kAny,
                   Job(&JobSpec::training, &Training::stop_early_metric),
                   "The job succeeds early when this metric gets no better. As in `keep.best`."),
              "none"));
  fields->push_back(Make("spec.training.stopEarly.patience", Form::kWhole, {1, 1'000'000}, kAny,
                         Job(&JobSpec::training, &Training::stop_early_patience),
                         "Evaluations in a row without a better value, until the job ends."));
  fields->push_back(Make("spec.training.stopEarly.minDelta", Form::kNumber, {0, 1'000'000'000},
                         kAny, Job(&JobSpec::training, &Training::stop_early_min_delta),
                         "A value that is better by no more than this does not count."));
}

}  // namespace

void AddTrainingFields(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  using Training = JobSpec::Training;
  using Restarts = JobSpec::Restarts;
  fields->push_back(
      Make("spec.training.unacknowledgedMinibatchesMax", Form::kWhole, {1, 1024}, kAny,
           Job(&JobSpec::training, &Training::unacknowledged_minibatches_max),
           "If more minibatches are unacknowledged, Commit waits. This bounds staleness. If "
           "gradients have more than 64 MiB together, the bound is one, and the first Push of the "
           "next minibatch waits for it."));
  fields->push_back(
      Make("spec.training.prefetchMinibatches", Form::kWhole, {0, 1024}, kAny,
           Job(&JobSpec::training, &Training::prefetch_minibatches),
           "How many minibatches ahead a worker requests rows. If the rows have more than 64 MiB, "
           "it is one."));
  fields->push_back(Make("spec.training.shardsAhead", Form::kWhole, {0, 1024}, kAny,
                         Job(&JobSpec::training, &Training::shards_ahead),
                         "Shards that a worker keeps ready in addition to the current one. If "
                         "shards are short, it keeps enough for 1.5 s, so that it works while the "
                         "master restarts, up to 256. If they are very short, it keeps enough for "
                         "a tenth of a second, up to 4096. 0: it keeps none."));
  fields->push_back(
      Choice(Make("spec.training.wireEncoding", Form::kChoice, {}, kAny,
                  Job(&JobSpec::training, &Training::wire_encoding),
                  "Encoding of rows and gradients on the network. float16 ends at 65504."),
             {"float32", "float16", "bfloat16"}));
  fields->push_back(Make(
      "spec.training.rejectedRecordsMax", Form::kWhole, {0, std::numeric_limits<uint64_t>::max()},
      kAny, Job(&JobSpec::training, &Training::rejected_records_max),
      "If trainers reject more records than this in all epochs together, the job "
      "fails."));
  fields->push_back(Make(
      "spec.training.failedShardsMax", Form::kWhole, {0, std::numeric_limits<uint64_t>::max()},
      kAny, Job(&JobSpec::training, &Training::failed_shards_max),
      "If more shards than this are FAILED at a time, no more are granted, and the job ends as "
      "failed when those in progress are committed. Shards whose records a topic has lost do not "
      "count."));
  AddEpochEnds(fields);
  fields->push_back(
      Make("spec.restarts.crashLoopExits", Form::kWhole, {1, 1000}, kAny,
           Job(&JobSpec::restarts, &Restarts::crash_loop_exits),
           "If one node exits this often without progress in between, the job stops."));
  fields->push_back(Make("spec.restarts.backoffInitial", Form::kDuration, {0, kHour}, kAny,
                         Job(&JobSpec::restarts, &Restarts::backoff_initial),
                         "Wait before the second restart of a node. The first restart happens at "
                         "once. Later waits double each time."));
  fields->push_back(Make("spec.restarts.backoffMax", Form::kDuration, {0, 24 * kHour}, kAny,
                         Job(&JobSpec::restarts, &Restarts::backoff_max),
                         "Longest wait before a restart."));
  fields->push_back(
      Make("spec.drainTimeout", Form::kDuration, {kSecond, 24 * kHour}, kAny,
           Job(&JobSpec::drain_timeout),
           "How long a drain waits for shards in progress. Then it waits at most as long for "
           "snapshots."));
}

}  // namespace muster::job_file
