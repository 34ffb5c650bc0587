// certificate_tool DIRECTORY HOST: renews the certificates of a job's servers and workers there, as
// `muster run` does. The new ones name HOST, too. For tests.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/status.h"
#include "security/certificate_authority.h"
#include "security/credentials.h"

int main(int argc, char** argv) {
  using muster::Role;
  if (argc != 3) return 2;
  const std::string directory = argv[1], host = argv[2];
  const muster::WallTime now = muster::SystemClock().Wall();
  const auto old = LoadCredentials(muster::CredentialFilesOf(directory, Role::kServer), {}, now);
  absl::Status status = old.status();
  if (status.ok()) {
    status =
        muster::EnsureCertificates({.directory = directory,
                                    .job_id = old->identity.job_id,
                                    .hosts = {{Role::kServer, {host}}, {Role::kWorker, {host}}}},
                                   now)
            .status();
  }
  if (!status.ok()) fmt::print(stderr, "{}\n", muster::Message(status));
  return status.ok() ? 0 : 1;
}
