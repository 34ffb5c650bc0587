#include "master/core/orphans.h"

#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/planted_bug.h"

namespace muster {

std::optional<MasterIncarnation> IncarnationIn(std::string_view name) {
  name.remove_prefix(name.find('/') == std::string_view::npos ? 0 : name.find('/') + 1);
  const size_t begin = name.find("-s");
  if (!name.starts_with('e') || begin == std::string_view::npos) return std::nullopt;
  const char* const end = name.data() + name.size();
  uint64_t incarnation = 0;
  const auto [rest, error] = std::from_chars(name.data() + begin + 2, end, incarnation);
  if (error != std::errc() || rest == end || *rest != '.') return std::nullopt;
  return MasterIncarnation(incarnation);
}

bool MaySweep(std::string_view name, const std::set<std::string>& named, MasterIncarnation own) {
  if (named.contains(std::string(name))) return false;
  const std::optional<MasterIncarnation> incarnation = IncarnationIn(name);
  if (MUSTER_PLANTED(kSweepsNewer)) return true;
  return !incarnation.has_value() || *incarnation < own;
}

}  // namespace muster
