#include "worker_sdk/session/session_tls.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "security/tls_context.h"

namespace muster::internal {
namespace {

void Say(LogLevel level, std::string_view text) {
  if (level < LogLevel::kWarning) return;  // every worker of the job would print it
  std::fprintf(stderr, "muster: %.*s\n", static_cast<int>(text.size()), text.data());
}

absl::StatusOr<net::TlsContextSource> SourceFor(Role server, const CredentialFiles& files,
                                                const std::string& job_id) {
  static const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<TlsContext> made,
      TlsContext::Make(ClientTls{.files = files, .job_id = job_id, .server = server}, &clock, Say));
  return net::SourceOf(std::move(made));
}

absl::StatusOr<net::TlsContextSource> SourceForMembers(const CredentialFiles& files,
                                                       const std::string& job_id) {
  static const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<TlsContext> made,
      TlsContext::Make(ServerTls{.files = files, .job_id = job_id, .clients = {Role::kWorker}},
                       &clock, Say));
  return net::SourceOf(std::move(made));
}

}  // namespace

absl::StatusOr<SessionTls> MakeSessionTls(const SessionOptions& options) {
  const std::pair<std::string_view, const std::string*> given[] = {
      {"MUSTER_CA_FILE", &options.ca_file},
      {"MUSTER_CERTIFICATE_FILE", &options.certificate_file},
      {"MUSTER_KEY_FILE", &options.key_file}};
  std::string_view set, missing;
  for (const auto& [name, value] : given) (value->empty() ? missing : set) = name;
  if (set.empty()) return SessionTls{};
  if (!missing.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is set, but {} is not: set the files of the authority, the certificate and the key, or "
        "none of them",
        set, missing));
  }
  const CredentialFiles files{options.ca_file, options.certificate_file, options.key_file};
  MUSTER_ASSIGN_OR_RETURN(const Credentials own,
                          LoadCredentials(files, {.job_id = options.job_id, .role = Role::kWorker},
                                          SystemClock().Wall()));
  SessionTls tls;
  MUSTER_ASSIGN_OR_RETURN(tls.master, SourceFor(Role::kMaster, files, own.identity.job_id));
  MUSTER_ASSIGN_OR_RETURN(tls.servers, SourceFor(Role::kServer, files, own.identity.job_id));
  MUSTER_ASSIGN_OR_RETURN(tls.members_accept, SourceForMembers(files, own.identity.job_id));
  MUSTER_ASSIGN_OR_RETURN(tls.members_connect,
                          SourceFor(Role::kWorker, files, own.identity.job_id));
  return tls;
}

}  // namespace muster::internal
