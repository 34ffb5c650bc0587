#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/file/yaml_tree.h"

/// Fragments of pod templates in a job file. Pure, thread-safe functions.
namespace muster::job_file {

/// The pods to which a fragment applies.
enum class FragmentPods { kAll, kMaster, kServers, kWorkers };
/// Reads them from the last name of the path "spec.kubernetes.podTemplates.NAME".
FragmentPods PodsOf(std::string_view path);

/// Converts a fragment of a Kubernetes PodTemplateSpec to the text of a JSON object. Fields that
/// Muster does not know stay as they are, so a fragment may use features that are newer than
/// Muster. A text without quotes becomes a number, true, false or null if it looks like one, as for
/// kubectl.
///
/// kInvalidArgument, with the field's path in the fragment and its line, if: it is not a group of
/// `metadata` and `spec`; it has a field that Muster sets (muster/... labels, restartPolicy, the
/// command of the container `muster`, ...); a label, an annotation or a variable is not a text; a
/// name is given twice or begins with '$'.
absl::StatusOr<std::string> PodFragment(const YamlNode& node, FragmentPods pods);

}  // namespace muster::job_file
