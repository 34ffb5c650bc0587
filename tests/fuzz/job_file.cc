#include "job/file/job_file.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/status.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {

void FuzzJobFile(std::string_view input) {
  const absl::StatusOr<JobSpec> job = ParseJobFile(input, "job.yaml", "/base");
  if (job.ok()) {
    MUSTER_CHECK(!job->name.empty() && !job->datasets.empty());
    MUSTER_CHECK(job->state_directory.starts_with("/"));
    return;
  }
  // Errors for people: at most 20, and each begins with the file.
  const std::string text(Message(job.status()));
  MUSTER_CHECK(text.starts_with("job.yaml"));
  MUSTER_CHECK(std::count(text.begin(), text.end(), '\n') <= 21);
}

}  // namespace muster::testing
