#include "cli/show/reasons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace muster {

void Reasons::Add(const std::string& name, const std::string& reason) {
  const auto found = std::ranges::find(reasons_, reason, &Reason::text);
  (found == reasons_.end() ? reasons_.emplace_back(Reason{reason, {}}) : *found)
      .names.push_back(name);
}

std::vector<std::pair<std::string, std::string>> Reasons::All() const {
  constexpr size_t kNamed = 3;
  std::vector<std::pair<std::string, std::string>> all;
  for (const Reason& reason : reasons_) {
    const std::span<const std::string> names(reason.names);
    const size_t named = std::min(names.size(), kNamed);
    const size_t more = names.size() - named;
    all.emplace_back(fmt::format("{}{}", fmt::join(names.first(named), ", "),
                                 more == 0 ? "" : fmt::format(" and {} more", more)),
                     reason.text);
  }
  return all;
}

}  // namespace muster
