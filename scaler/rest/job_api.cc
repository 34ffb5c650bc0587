#include "scaler/rest/job_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text.h"

namespace muster::scaler::rest {

absl::StatusOr<const Node*> FindNode(const Picture& picture, const std::string& name) {
  std::vector<std::string> names;
  for (const Node& node : picture.nodes.nodes) {
    if (node.name == name) return &node;
    if (names.size() < 20) names.push_back(node.name);
  }
  return absl::NotFoundError(fmt::format("there is no node '{}'; there are: {}",
                                         ValidUtf8(name, 64), fmt::join(names, ", ")));
}

}  // namespace muster::scaler::rest
