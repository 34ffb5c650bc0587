#pragma once

#include <string>
#include <vector>

#include "job/file/dataset_draft.h"
#include "job/file/job_rules.h"

namespace muster::job_file {

/// Checks that a dataset has exactly one source, and that the fields of the source fit together and
/// fit the dataset. `path` is the dataset's path: "spec.datasets[0]".
void CheckSource(const DatasetDraft& draft, const std::string& path,
                 std::vector<BrokenRule>* broken);

/// The source of a dataset. Requires: it breaks no rule. Relative paths begin at `base_directory`.
SourceSpec SourceOf(const DatasetDraft& draft, const std::string& base_directory);

}  // namespace muster::job_file
