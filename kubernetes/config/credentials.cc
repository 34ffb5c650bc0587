#include "kubernetes/config/credentials.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace muster::kubernetes {
namespace {

constexpr uint64_t kTokenBytesMax = 64 << 10;

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::string token, ReadFile(path, kTokenBytesMax));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) {
    token.pop_back();
  }
  if (token.empty()) return absl::UnauthenticatedError(fmt::format("{} is empty", path));
  return token;
}

}  // namespace

bool AreFresh(const std::optional<WallTime>& expires, WallTime now) {
  return !expires.has_value() || now + kRenewBefore < *expires;
}

CredentialSource::CredentialSource(ClusterAccess access, const Clock* clock,
                                   std::chrono::milliseconds plugin_deadline)
    : access_(std::move(access)), clock_(clock), plugin_deadline_(plugin_deadline) {}

absl::StatusOr<Credentials> CredentialSource::Get() {
  Credentials credentials;
  MUSTER_ASSIGN_OR_RETURN(credentials.client_certificate, ReadPem(access_.client_certificate));
  MUSTER_ASSIGN_OR_RETURN(credentials.client_key, ReadPem(access_.client_key));
  if (!access_.token_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(credentials.token, ReadTokenFile(access_.token_file));
    return credentials;
  }
  credentials.token = access_.token;
  if (!credentials.token.empty() || !access_.exec.has_value()) return credentials;
  MUSTER_ASSIGN_OR_RETURN(Credentials printed, OfPlugin());
  if (printed.client_certificate.empty()) {
    printed.client_certificate = std::move(credentials.client_certificate);
    printed.client_key = std::move(credentials.client_key);
  }
  return printed;
}

absl::StatusOr<Credentials> CredentialSource::OfPlugin() {
  // While a plugin runs, other callers wait for it, and then use its output.
  const MutexLock lock(&mutex_);
  if (of_plugin_ && AreFresh(of_plugin_->expires, clock_->Wall())) return *of_plugin_;
  of_plugin_.reset();
  MUSTER_ASSIGN_OR_RETURN(of_plugin_, RunExecPlugin(access_, plugin_deadline_));
  return *of_plugin_;
}

void CredentialSource::Refused(const Credentials& credentials) {
  const MutexLock lock(&mutex_);
  if (of_plugin_ && of_plugin_->token == credentials.token) of_plugin_.reset();
}

}  // namespace muster::kubernetes
