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

}  // namespace muster
