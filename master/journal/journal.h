#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "master/core/durable_state.h"

namespace muster {

/// Pins a state directory to its job. A journal with another header is refused.
struct JournalHeader {
  std::string job;
  /// Name and value of every field that may not change on resume, in order.
  std::vector<std::pair<std::string, std::string>> fixed_fields;
  /// Dataset name and fingerprint of its files.
  std::vector<std::pair<std::string, std::string>> sources;
  /// Distinguishes this job from every other job, also of the same name. A journal never changes
  /// it. CheckHeader does not compare it.
  std::string job_id;
};

/// kFailedPrecondition that lists every difference with both values; OK when there is none.
absl::Status CheckHeader(const JournalHeader& journal, const JournalHeader& job,
                         const std::string& directory);

/// Stores the master's durable state. Not thread-safe: only the master's owner thread calls it.
class Journal {
 public:
  virtual ~Journal() = default;
  /// The job's id, fixed when the journal was created.
  virtual const std::string& job_id() const = 0;
  /// The state as it was when the journal was opened. Call it once, before any Write.
  virtual DurableState TakeState() = 0;
  /// Writes all mutations or, after a crash, none; they are on disk when it returns. After an
  /// error,
  /// send no more answers: it is not known which part of the batch the next start will find. The
  /// process must then end with _Exit, so that the store stays as it is.
  virtual absl::Status Write(std::span<const Mutation> mutations) = 0;
  /// Whether this is still the job's journal; Write asks after its sync. kCancelled: another master
  /// has taken the job over, so nothing may be answered any more, as after a failed Write.
  virtual absl::Status Look() { return absl::OkStatus(); }
};

}  // namespace muster
