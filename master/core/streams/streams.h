#pragma once

#include <map>
#include <vector>

#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/streams/stream_look.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// Decides what looks at the job's topics mean. It cuts ranges from the offsets seen. Records that
/// retention has deleted are lost. If a topic was created again, the job fails.
///
/// Owns what was reported about each topic, so that each event is reported once, and the delays of
/// its records. StreamTable, in the ledger, has the ranges. Enforces docs/protocol.md, section 9;
/// docs/kafka.md has the promises. Pure; not thread-safe.
class Streams {
 public:
  /// All of them outlive it.
  Streams(const Books* books, Ledger* ledger, Failures* failures, const Leasing* leasing,
          JobLife* life)
      : books_(books), ledger_(ledger), failures_(failures), leasing_(leasing), life_(life) {}

  /// As MasterCore::TakeLook.
  void See(const StreamLook& look, StepTime at);
  /// Cuts the ranges that are due now, while the job runs.
  void Tick(StepTime at);
  /// A worker reports how long the records of a stream took. `before` is the last report of its
  /// process; null if there is none.
  void TakeDelays(const DatasetDelays& told, const DelayHistogram* before, TimePoint now);
  /// As MasterCore::ToldOf.
  const StreamTold* ToldOf(DatasetId dataset) const;

 private:
  void TellError(const StreamLook& look, StreamTold* told, StepTime at);
  /// Reports problems with the group and with the topic for rejected records.
  void TellSideTroubles(const StreamLook& look, StreamTold* told, StepTime at);
  /// A look has not found the topic.
  void CountGone(DatasetId dataset, StreamTold* told, StepTime at);
  /// Reports logs that were truncated and reach their former end again.
  void TellGrownAgain(DatasetId dataset, StreamTold* told, StepTime at);
  void TellNewPartitions(const StreamLook& look, size_t known, StepTime at);
  /// False: the job has failed.
  bool Check(const StreamLook& look, StreamTold* told, StepTime at);
  /// The same, for logs that end before offsets that the dataset already has.
  bool CheckTruncated(DatasetId dataset, const std::vector<TopicPartition>& truncated,
                      StreamTold* told, StepTime at);
  void CheckRetention(const StreamLook& look, StreamTold* told, StepTime at);
  /// Makes all TODO and FAILED ranges FAILED and lost of which retention has deleted records.
  void LoseRanges(DatasetId dataset, StepTime at);
  void Cut(DatasetId dataset, StepTime at);
  const DatasetPlan& PlanOf(DatasetId dataset) const {
    return books_->options.datasets[dataset.value()];
  }

  const Books* const books_;
  Ledger* const ledger_;
  Failures* const failures_;
  const Leasing* const leasing_;
  JobLife* const life_;
  std::map<DatasetId, StreamTold> told_;
};

}  // namespace muster
