#include "cli/manifests/job_secrets.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/token_file.h"
#include "job/in_cluster.h"
#include "security/certificate.h"
#include "security/certificate_authority.h"
#include "security/identity.h"

namespace muster {
namespace {

/// A folder that only its owner may read, and that is removed with this object. Until then, Ctrl-C
/// and similar signals wait, because a process that ends at once would leave the keys there. For
/// one thread.
class SecretFolder {
 public:
  static absl::StatusOr<SecretFolder> Make() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &ends, &before);
    absl::StatusOr<std::string> path = MakePrivateFolder(TemporaryFolder(), "muster-secrets");
    if (!path.ok()) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      return path.status();
    }
    return SecretFolder(*std::move(path), before);
  }
  SecretFolder(SecretFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), before_(other.before_) {}
  SecretFolder& operator=(SecretFolder&&) = delete;
  ~SecretFolder() {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  SecretFolder(std::string path, const sigset_t& before)
      : path_(std::move(path)), before_(before) {}
  std::string path_;
  sigset_t before_;
};

std::string DrawJobId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random());
  return id;
}

std::vector<std::string> FileNames() {
  std::vector<std::string> names = {"ca.crt", "ca.key"};
  for (const Role role : kRoles) {
    names.push_back(fmt::format("{}.crt", RoleWord(role)));
    names.push_back(fmt::format("{}.key", RoleWord(role)));
  }
  return names;
}

/// Fills `secrets->files` with the present files and with those that the authority adds.
absl::Status Certify(const SecretFolder& folder, const std::string& job, const std::string& ns,
                     WallTime now, kubernetes::JobSecrets* secrets) {
  const std::string directory = folder.File("tls");
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  MUSTER_RETURN_IF_ERROR(MakePrivate(directory));
  for (const auto& [name, text] : secrets->files) {
    MUSTER_RETURN_IF_ERROR(
        WriteFileAtomically(directory + "/" + name, text, FileAccess::kOwnerOnly));
  }
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  for (std::string& name : InClusterRestNames(job, ns)) hosts.push_back(std::move(name));
  MUSTER_RETURN_IF_ERROR(EnsureCertificates({.directory = directory,
                                             .job_id = secrets->job_id,
                                             .hosts = {{Role::kScaler, std::move(hosts)}},
                                             .certificate_life = std::chrono::hours(24 * 365)},
                                            now)
                             .status());
  for (const std::string& name : FileNames()) {
    MUSTER_ASSIGN_OR_RETURN(secrets->files[name],
                            ReadFile(directory + "/" + name, security::kPemBytesMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<kubernetes::JobSecrets> MakeJobSecrets(const std::string& job, const std::string& ns,
                                                      WallTime now, const std::string& kept_id) {
  MUSTER_ASSIGN_OR_RETURN(const SecretFolder folder, SecretFolder::Make());
  kubernetes::JobSecrets secrets{
      .files = {}, .token = {}, .job_id = kept_id.empty() ? DrawJobId() : kept_id};
  MUSTER_ASSIGN_OR_RETURN(secrets.token, LoadOrMakeToken(folder.File("token")));
  MUSTER_RETURN_IF_ERROR(Certify(folder, job, ns, now, &secrets));
  return secrets;
}

absl::StatusOr<kubernetes::JobSecrets> RenewJobSecrets(const kubernetes::JobSecrets& secrets,
                                                       const std::string& job,
                                                       const std::string& ns, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(const SecretFolder folder, SecretFolder::Make());
  kubernetes::JobSecrets renewed = secrets;
  MUSTER_RETURN_IF_ERROR(Certify(folder, job, ns, now, &renewed));
  return renewed;
}

}  // namespace muster
