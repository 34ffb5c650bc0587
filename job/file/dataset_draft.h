#pragma once

#include "job/job_spec.h"

namespace muster::job_file {

/// A dataset as a job file gives it: the fields of every kind of source side by side. The rules
/// (source_rules.h) say which of them go together.
struct DatasetDraft {
  /// Without its source.
  DatasetSpec spec;
  LinesSpec lines;
  TopicSpec topic;
};

}  // namespace muster::job_file
