#include "security/identity.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::string_view kScheme = "muster://";
constexpr std::string_view kDomain = ".muster.internal";
constexpr size_t kLabelMax = 63;
constexpr size_t kQuoteMax = 200;

bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLabelMax && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

absl::Status CheckLabel(std::string_view what, std::string_view text) {
  if (IsLabel(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the {} '{}' cannot be in a certificate; it needs 1 to {} of a-z, 0-9 and -, and "
                  "no - at an end",
                  what, Excerpt(text, kQuoteMax), kLabelMax));
}

}  // namespace

std::string_view RoleWord(Role role) {
  switch (role) {
    case Role::kMaster:
      return "master";
    case Role::kServer:
      return "ps";
    case Role::kScaler:
      return "scaler";
    case Role::kWorker:
      return "worker";
    case Role::kOperator:
      return "operator";
  }
  return "";
}

std::optional<Role> ParseRole(std::string_view word) {
  for (const Role role : kRoles) {
    if (RoleWord(role) == word) return role;
  }
  return std::nullopt;
}

absl::Status CheckIdentity(const Identity& identity) {
  MUSTER_RETURN_IF_ERROR(CheckLabel("job's id", identity.job_id));
  return CheckLabel("name", identity.name);
}

std::string IdentityUri(const Identity& identity) {
  return fmt::format("{}{}/{}/{}", kScheme, identity.job_id, RoleWord(identity.role),
                     identity.name);
}

absl::StatusOr<Identity> ParseIdentityUri(std::string_view uri) {
  const auto refuse = [uri] {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not muster://JOB-ID/ROLE/NAME", Excerpt(uri, kQuoteMax)));
  };
  if (!uri.starts_with(kScheme)) return refuse();
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t first = rest.find('/');
  const size_t second = first == std::string_view::npos ? first : rest.find('/', first + 1);
  if (second == std::string_view::npos) return refuse();
  const std::optional<Role> role = ParseRole(rest.substr(first + 1, second - first - 1));
  if (!role.has_value()) return refuse();
  Identity identity{std::string(rest.substr(0, first)), *role,
                    std::string(rest.substr(second + 1))};
  if (!CheckIdentity(identity).ok()) return refuse();
  return identity;
}

std::string IdentityHost(std::string_view job_id, Role role) {
  return fmt::format("{}.{}{}", RoleWord(role), job_id, kDomain);
}

absl::StatusOr<JobRole> ParseIdentityHost(std::string_view host) {
  const size_t dot = host.find('.');
  if (dot != std::string_view::npos && host.ends_with(kDomain) &&
      dot + 1 + kDomain.size() <= host.size()) {
    const std::optional<Role> role = ParseRole(host.substr(0, dot));
    const std::string_view job = host.substr(dot + 1, host.size() - kDomain.size() - dot - 1);
    if (role.has_value() && IsLabel(job)) return JobRole{std::string(job), *role};
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not ROLE.JOB-ID.muster.internal", Excerpt(host, kQuoteMax)));
}

}  // namespace muster
