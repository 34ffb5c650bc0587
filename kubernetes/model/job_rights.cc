#include "kubernetes/model/job_rights.h"

#include <fmt/format.h>

#include <string_view>

#include "base/status.h"

namespace muster::kubernetes {

std::string ResourceTextOf(const Right& right) {
  const std::string_view subresource = right.subresource;
  return fmt::format("{}{}{}", PluralOf(right.resource), subresource.empty() ? "" : "/",
                     subresource);
}

std::string TextOf(const Right& right) {
  return fmt::format("{} {}", right.verb, ResourceTextOf(right));
}

const std::vector<Right>& RightsOfJob() {
  static const std::vector<Right> rights = {
      {"get", Resource::kPods},    {"list", Resource::kPods},   {"watch", Resource::kPods},
      {"create", Resource::kPods}, {"delete", Resource::kPods}, {"get", Resource::kPods, "log"}};
  return rights;
}

absl::StatusOr<std::vector<std::string>> MissingOf(
    const std::vector<Right>& rights,
    const std::function<absl::StatusOr<bool>(const Right&)>& may) {
  std::vector<std::string> missing;
  for (const Right& right : rights) {
    MUSTER_ASSIGN_OR_RETURN(const bool has, may(right));
    if (!has) missing.push_back(TextOf(right));
  }
  return missing;
}

}  // namespace muster::kubernetes
