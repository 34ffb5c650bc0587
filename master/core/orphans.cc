#include "master/core/orphans.h"

#include <charconv>
#include <cstdint>
#include <system_error>

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
  // Rule 11.3.
  return !incarnation.has_value() || *incarnation < own;
}

std::optional<AttemptNumber> StripeAttemptIn(std::string_view name) {
  const size_t begin = name.find("-a");
  if (!name.starts_with("group/r") || begin == std::string_view::npos) return std::nullopt;
  const char* const end = name.data() + name.size();
  uint64_t attempt = 0;
  const auto [rest, error] = std::from_chars(name.data() + begin + 2, end, attempt);
  if (error != std::errc() || !std::string_view(rest, end).starts_with("-c")) return std::nullopt;
  return AttemptNumber(attempt);
}

bool MaySweepStripe(std::string_view name, const std::set<std::string>& named,
                    AttemptNumber newest) {
  const std::optional<AttemptNumber> attempt = StripeAttemptIn(name);
  return attempt.has_value() && *attempt <= newest && !named.contains(std::string(name));
}

}  // namespace muster
