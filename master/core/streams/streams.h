#pragma once

#include <map>
#include <vector>

#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/streams/stream_look.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The topics of the job: what looks at them mean. Ranges are cut from what was seen, what
/// retention has taken is lost, and a topic that is not the one of before ends the job.
///
/// Owns what was said of each topic, so that it is said once, and the delays of its records. The
/// ranges are StreamTable's, in the ledger. Keeps docs/protocol.md, section 9; docs/kafka.md says
/// what is promised. Pure; not thread-safe.
class Streams {
 public:
  /// All of them outlive it.
  Streams(Books* books, Failures* failures, Leasing* leasing, JobLife* life)
      : books_(books), failures_(failures), leasing_(leasing), life_(life) {}

  /// As MasterCore::TakeLook.
  void See(const StreamLook& look, StepTime at);
  /// Cuts what is due by now, as long as the job goes on.
  void Tick(StepTime at);
  /// A worker tells how long the records of a stream took. `before`: what its process told last;
  /// null: nothing yet.
  void TakeDelays(const DatasetDelays& told, const DelayHistogram* before, TimePoint now);
  /// As MasterCore::ToldOf.
  const StreamTold* ToldOf(DatasetId dataset) const;

 private:
  void TellError(const StreamLook& look, StreamTold* told, StepTime at);
  /// Tells of the topic's side ways: the group, and the topic for rejected records.
  void TellSideTroubles(const StreamLook& look, StreamTold* told, StepTime at);
  /// A look has not found the topic.
  void CountGone(DatasetId dataset, StreamTold* told, StepTime at);
  /// A truncated log is as long as before.
  void TellGrownAgain(DatasetId dataset, StreamTold* told, StepTime at);
  void TellNewPartitions(const StreamLook& look, size_t known, StepTime at);
  /// False: the job has failed.
  bool Check(const StreamLook& look, StreamTold* told, StepTime at);
  /// Likewise, when logs end before what the dataset has of them.
  bool CheckTruncated(DatasetId dataset, const std::vector<TopicPartition>& truncated,
                      StreamTold* told, StepTime at);
  void CheckRetention(const StreamLook& look, StreamTold* told, StepTime at);
  /// FAILED and lost: all TODO and FAILED ranges of which retention has taken something.
  void LoseRanges(DatasetId dataset, StepTime at);
  void Cut(DatasetId dataset, StepTime at);
  const DatasetPlan& PlanOf(DatasetId dataset) const {
    return books_->options.datasets[dataset.value()];
  }

  Books* const books_;
  Failures* const failures_;
  Leasing* const leasing_;
  JobLife* const life_;
  std::map<DatasetId, StreamTold> told_;
};

}  // namespace muster
