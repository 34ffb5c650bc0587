#include "master/sources/topic/topic_follower.h"

#include <set>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "sharding/stream/stream_bounds.h"

namespace muster {

TopicFollower::TopicFollower(Options options, std::unique_ptr<kafka::Topic> topic,
                             FollowOptions follow)
    : options_(std::move(options)),
      topic_(std::move(topic)),
      tell_(std::move(follow.tell)),
      clock_(follow.clock),
      progress_(std::move(follow.progress)) {}

TopicFollower::~TopicFollower() {
  Stop();
}

void TopicFollower::Start() {
  thread_ = std::thread([this] { Run(); });
}

void TopicFollower::RequestStop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  wake_.SignalAll();
}

void TopicFollower::Stop() {
  RequestStop();
  if (thread_.joinable()) thread_.join();
}

void TopicFollower::Run() {
  while (true) {
    Step();
    MutexLock lock(&mutex_);
    if (!stopped_) wake_.WaitFor(&mutex_, options_.look_every);
    if (stopped_) break;
  }
  commit_at_.reset();
  Commit();
}

void TopicFollower::Step() {
  StreamLook look = Look();
  if (look.error.empty()) CheckDeadLetters();
  look.group_trouble = commit_trouble_;
  look.dead_letter_trouble = dead_letter_trouble_;
  absl::StatusOr<FollowOptions::Progress> progress = tell_(look);
  if (!progress.ok()) return;  // the master ends
  progress_ = *std::move(progress);
  if (look.error.empty()) Commit();
}

StreamLook TopicFollower::Look() {
  absl::StatusOr<StreamLook> look = TryLook();
  if (look.ok()) return *std::move(look);
  StreamLook failed{.dataset = options_.dataset};
  failed.error = Message(look.status());
  failed.gone = absl::IsNotFound(look.status());
  failed.fatal = absl::IsFailedPrecondition(look.status());
  return failed;
}

absl::StatusOr<StreamLook> TopicFollower::TryLook() {
  const TopicSpec& spec = options_.spec;
  StreamLook look{.dataset = options_.dataset};
  MUSTER_ASSIGN_OR_RETURN(look.cluster, topic_->Cluster());
  MUSTER_ASSIGN_OR_RETURN(const uint32_t partitions, topic_->Partitions());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<kafka::Topic::Log> seen, topic_->Logs(partitions));
  // Values of the cluster change with its answers.
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster, topic_->Cluster());
  if (cluster != look.cluster) {
    return absl::UnavailableError(
        fmt::format("the brokers belong to cluster {} now, but belonged to cluster {} a moment ago",
                    cluster, look.cluster));
  }
  std::vector<StreamLog> logs;
  for (uint32_t p = 0; p < partitions; ++p) {
    logs.push_back({TopicPartition(p), seen[p].begin, seen[p].stable_end, seen[p].end, {}, {}});
  }
  std::set<TopicPartition> known;
  size_t ended = 0, over = 0;
  for (const StreamTable::Progress& partition : progress_) {
    const StreamPosition& position = partition.position;
    known.insert(position.partition);
    if (!position.end.has_value()) continue;
    ++ended;
    if (position.cut >= *position.end) ++over;
  }
  if (known.empty() && spec.start.kind == StreamBound::Kind::kTime) {
    MUSTER_ASSIGN_OR_RETURN(const auto offsets, topic_->OffsetsAt(partitions, spec.start.time));
    for (uint32_t p = 0; p < partitions; ++p) logs[p].at_start_time = offsets[p];
  }
  const bool due = !end_time_at_.has_value() || clock_->Now() >= *end_time_at_;
  // An added partition has no end yet, either.
  const bool ask_end = spec.end.kind == StreamBound::Kind::kTime &&
                       (ended < partitions || known.size() < partitions) && due;
  if (ask_end) {
    MUSTER_ASSIGN_OR_RETURN(const auto offsets, topic_->OffsetsAt(partitions, spec.end.time));
    for (uint32_t p = 0; p < partitions; ++p) logs[p].at_end_time = offsets[p];
    end_time_at_ = clock_->Now() + options_.end_time_every;
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_->Wall());
  absl::StatusOr<std::vector<PartitionLook>> partition_looks =
      ResolveStamps({.start = spec.start,
                     .end = spec.end,
                     .known = known,
                     .now = now,
                     .end_time_asked = ask_end,
                     .over = !known.empty() && over == known.size()},
                    logs);
  if (absl::IsOutOfRange(partition_looks.status())) {
    look.beyond = true;
    look.error = Message(partition_looks.status());
    return look;
  }
  MUSTER_ASSIGN_OR_RETURN(look.partitions, std::move(partition_looks));
  if (!retention_at_.has_value() || clock_->Now() >= *retention_at_) {
    retention_at_ = clock_->Now() + options_.retention_every;
    // A user who may read a topic may not be allowed to query its settings.
    const auto retention = topic_->Retention();
    if (retention.ok()) retention_ = *retention;
  }
  look.retention = retention_;
  return look;
}

void TopicFollower::CheckDeadLetters() {
  const std::string& topic = options_.spec.dead_letter_topic;
  if (topic.empty()) return;
  if (dead_letters_at_.has_value() && clock_->Now() < *dead_letters_at_) return;
  dead_letters_at_ = clock_->Now() + options_.dead_letters_every;
  const absl::Status status = topic_->CheckOther(topic);
  // No answer from the brokers means that nothing is known.
  if (absl::IsUnavailable(status)) return;
  dead_letter_trouble_ = status.ok() ? "" : std::string(Message(status));
}

void TopicFollower::Commit() {
  if (commit_at_.has_value() && clock_->Now() < *commit_at_) return;
  std::map<uint32_t, uint64_t> offsets;
  for (const StreamTable::Progress& partition : progress_) {
    const uint32_t id = partition.position.partition.value();
    const auto told = committed_.find(id);
    if (told == committed_.end() || told->second != partition.committed) {
      offsets[id] = partition.committed;
    }
  }
  if (offsets.empty()) return;
  commit_at_ = clock_->Now() + options_.commit_every;
  const absl::Status status = topic_->Commit(offsets);
  if (status.ok()) {
    for (const auto& [id, offset] : offsets) committed_[id] = offset;
    if (!std::exchange(commit_trouble_, "").empty()) {
      Log(LogLevel::kInfo, "dataset '{}': the offsets of group '{}' are committed again",
          options_.name, options_.group);
    }
    return;
  }
  commit_at_ = clock_->Now() + options_.commit_retry;
  if (!std::exchange(commit_trouble_, std::string(Message(status))).empty()) return;
  Log(LogLevel::kWarning,
      "dataset '{}': the offsets of its group cannot be committed to the brokers: {}. Lag tools "
      "show too much. Training continues",
      options_.name, commit_trouble_);
}

}  // namespace muster
