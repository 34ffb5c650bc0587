#include "cli/run/source_looks.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "master/sources/kinds.h"
#include "master/sources/source_follower.h"

namespace muster {
namespace {

/// Takes the first look of a follower, which runs in its own thread.
class FirstLook {
 public:
  absl::StatusOr<FollowOptions::Progress> Take(const StreamLook& look) {
    MutexLock lock(&mutex_);
    if (!look_.has_value()) look_ = look;
    taken_.SignalAll();
    return absl::CancelledError("one look is enough");
  }
  StreamLook Wait() {
    MutexLock lock(&mutex_);
    while (!look_.has_value()) taken_.Wait(&mutex_);
    return *look_;
  }

 private:
  Mutex mutex_;
  CondVar taken_;
  std::optional<StreamLook> look_ MUSTER_GUARDED_BY(mutex_);
};

/// Says what is missing if the dataset ends beyond its log: "at offset 9 of partition 0, but there
/// are 5 so far".
std::string MissingText(const StreamLook& look) {
  for (const PartitionLook& partition : look.partitions) {
    if (!partition.end.has_value() || *partition.end <= partition.stable_end) continue;
    return fmt::format("it ends at offset {} of partition {}, whose log ends at {} now",
                       *partition.end, partition.partition.value(), partition.stable_end);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<SourceLook>> LookAtSources(const JobSpec& job) {
  const SystemClock clock;
  std::vector<SourceLook> looks;
  for (uint32_t i = 0; i < job.datasets.size(); ++i) {
    const std::unique_ptr<DatasetSource> source = MakeSource(job, DatasetId(i));
    if (!source->Growth().has_value()) continue;
    FirstLook first;
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<SourceFollower> follower,
        source->Follow({.progress = {},
                        .tell = [&first](const StreamLook& look) { return first.Take(look); },
                        .clock = &clock}));
    follower->Start();
    looks.push_back({job.datasets[i].name, first.Wait()});
    follower->Stop();
  }
  return looks;
}

std::vector<std::string> EndsAhead(const JobSpec& job, WallTime now) {
  std::vector<std::string> lines;
  for (const DatasetSpec& dataset : job.datasets) {
    const auto* topic = std::get_if<TopicSpec>(&dataset.source);
    if (topic == nullptr || topic->end.kind != StreamBound::Kind::kTime) continue;
    if (topic->end.time <= now) continue;
    lines.push_back(fmt::format(
        "dataset '{}': the topic's end is a time in the future ({}): the job waits until then",
        dataset.name, ToString(topic->end)));
  }
  return lines;
}

SourceFindings JudgeLooks(const std::vector<SourceLook>& looks) {
  SourceFindings findings;
  for (const auto& [dataset, look] : looks) {
    const std::string name = fmt::format("dataset '{}'", dataset);
    if (look.gone || look.beyond || look.fatal) {
      findings.errors.push_back(fmt::format("{}: {}. The job would {}", name, look.error,
                                            look.fatal ? "fail" : "wait for it"));
      continue;
    }
    if (!look.error.empty()) {
      findings.notes.push_back(fmt::format(
          "{}: its brokers could not be asked, so its topic is not checked: {}", name, look.error));
      continue;
    }
    if (!look.dead_letter_trouble.empty()) {
      findings.errors.push_back(
          fmt::format("{}: rejected records could not be written: {}. The job would wait at the "
                      "first one",
                      name, look.dead_letter_trouble));
    }
    if (const std::string missing = MissingText(look); !missing.empty()) {
      findings.notes.push_back(fmt::format(
          "{}: {}; the job waits until the missing records are written", name, missing));
    }
  }
  return findings;
}

}  // namespace muster
