#pragma once

#include "job/job_spec.h"

namespace muster::job_file {

/// A dataset as a job file describes it, with the fields of every kind of source. source_rules.h
/// says which fields may occur together.
struct DatasetDraft {
  /// Its source is not set yet.
  DatasetSpec spec;
  LinesSpec lines;
  TopicSpec topic;
  RangeSpec range;
};

}  // namespace muster::job_file
