#pragma once

#include "absl/status/status.h"
#include "job/file/job_fields.h"
#include "job/file/yaml_tree.h"

namespace muster::job_file {

/// Checks the value of a field in the file, and stores it in the field's target in `scope`. If the
/// value is wrong, nothing is stored. kInvalidArgument then says what was expected and what was
/// found. The caller adds the position.
absl::Status StoreValue(const Field& field, const YamlNode& node, const FieldScope& scope);

}  // namespace muster::job_file
