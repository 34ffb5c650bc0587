#pragma once

#include "absl/status/statusor.h"
#include "job/file/yaml_tree.h"
#include "job/source_spec.h"

namespace muster::job_file {

enum class BoundOf : uint8_t { kStart, kEnd };

/// Reads a StreamBound: a word, a time (RFC 3339), or a group that maps partitions of the topic to
/// offsets. kInvalidArgument says what was expected.
absl::StatusOr<StreamBound> ParseStreamBound(const YamlNode& node, BoundOf which);

}  // namespace muster::job_file
