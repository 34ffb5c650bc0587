#pragma once

#include "absl/status/statusor.h"
#include "job/file/yaml_tree.h"
#include "job/source_spec.h"

namespace muster::job_file {

enum class BoundOf : uint8_t { kStart, kEnd };

/// Parses a StreamBound: a word, a time (RFC 3339), or a group with an offset for each partition of
/// the topic. kInvalidArgument says what was expected.
absl::StatusOr<StreamBound> ParseStreamBound(const YamlNode& node, BoundOf which);

}  // namespace muster::job_file
