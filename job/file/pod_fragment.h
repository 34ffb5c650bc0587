#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/file/yaml_tree.h"

/// Fragments of pod templates in a job file. Pure, thread-safe functions.
namespace muster::job_file {

/// The pods that a fragment is for.
enum class FragmentPods { kAll, kMaster, kServers, kWorkers };
/// By the last name of the path "spec.kubernetes.podTemplates.NAME".
FragmentPods PodsOf(std::string_view path);

/// Converts a fragment of a Kubernetes PodTemplateSpec to the text of a JSON object. Fields that
/// Muster does not know stay as they are, so a fragment may use what is newer than Muster. A text
/// without quotes is a number, true, false or null if it looks like one, as kubectl reads it.
///
/// kInvalidArgument, with the field's path below the fragment and its line: it is not a group of
/// `metadata` and `spec`; it has a field that Muster sets (muster/... labels, restartPolicy, the
/// command of the container `muster`, ...); a label, an annotation or a variable that is no text; a
/// name that is given twice or begins with '$'.
absl::StatusOr<std::string> PodFragment(const YamlNode& node, FragmentPods pods);

}  // namespace muster::job_file
