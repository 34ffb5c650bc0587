#pragma once

#include "absl/status/status.h"
#include "job/file/job_fields.h"
#include "job/file/yaml_tree.h"

namespace muster::job_file {

/// Checks what the file says for a field and stores it where the field's target points in `scope`.
/// kInvalidArgument says what was expected and what was found; the caller adds where. Nothing is
/// stored then.
absl::Status StoreValue(const Field& field, const YamlNode& node, const FieldScope& scope);

}  // namespace muster::job_file
