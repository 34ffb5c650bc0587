#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "master/core/durable_state.h"

namespace muster {

/// What pins a state directory to its job. A journal that has another one is refused.
struct JournalHeader {
  std::string job;
  /// Name and value of every field that may not change on resume, in order.
  std::vector<std::pair<std::string, std::string>> fixed_fields;
  /// Dataset name and fingerprint of its files.
  std::vector<std::pair<std::string, std::string>> sources;
  /// Tells this job from every other one, of the same name too. That of a new journal is kept for
  /// good; it is nothing that CheckHeader compares.
  std::string job_id;
};

/// kFailedPrecondition that lists every difference with both values; OK when there is none.
absl::Status CheckHeader(const JournalHeader& journal, const JournalHeader& job,
                         const std::string& directory);

/// Where the master's durable state lives. Not thread-safe: the master's one owner thread calls.
class Journal {
 public:
  virtual ~Journal() = default;
  /// The job's, from the time when the journal was made.
  virtual const std::string& job_id() const = 0;
  /// The state as it was when the journal was opened. To be called once, before any Write.
  virtual DurableState TakeState() = 0;
  /// All of the mutations or, after a crash, none; on disk when it returns. After an error nothing
  /// may be answered any more: it is not known what of the batch will be found at the next start.
  /// The process must then end with _Exit, for the store is left as it is.
  virtual absl::Status Write(std::span<const Mutation> mutations) = 0;
};

/// Keeps the state in memory; "reopening" it is handing state() to the next core. For tests.
class MemoryJournal final : public Journal {
 public:
  MemoryJournal() = default;
  explicit MemoryJournal(DurableState state, std::string job_id = "memory")
      : job_id_(std::move(job_id)), state_(std::move(state)) {}
  const std::string& job_id() const override { return job_id_; }
  DurableState TakeState() override { return state_; }
  absl::Status Write(std::span<const Mutation> mutations) override;
  const DurableState& state() const { return state_; }
  /// Every Write from now on fails with this.
  void FailWith(absl::Status status) { failure_ = std::move(status); }

 private:
  std::string job_id_ = "memory";
  DurableState state_;
  absl::Status failure_;
};

}  // namespace muster
