#include "cli/manifests/manifests_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/manifests/job_secrets.h"
#include "cli/manifests/manifest_text.h"
#include "cli/show/output.h"
#include "job/file/job_file.h"
#include "kubernetes/manifests/kustomize.h"

namespace muster {
namespace {

absl::StatusOr<kubernetes::ManifestJob> ReadJob(const ManifestsOptions& options) {
  const absl::StatusOr<std::string> text = ReadFile(options.job_file, kJobFileBytesMax);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("the job file cannot be read: {}", Message(text.status())));
  }
  return kubernetes::ReadManifestJob(*text, options.job_file, options.flags);
}

absl::Status PrintSecrets(const ManifestsOptions& options, const kubernetes::ManifestJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const kubernetes::JobSecrets secrets,
                          MakeJobSecrets(job.spec.name, job.options.ns, SystemClock().Wall()));
  PrintData(SecretsText(options, kubernetes::SecretsOf(job.spec, job.options, secrets)));
  return absl::OkStatus();
}

absl::Status WriteBase(const ManifestsOptions& options, const kubernetes::ManifestJob& job) {
  std::error_code error;
  std::filesystem::create_directories(options.kustomize, error);
  if (error) {
    return absl::FailedPreconditionError(fmt::format("--kustomize: cannot make the folder {}: {}",
                                                     options.kustomize, error.message()));
  }
  for (const kubernetes::ManifestFile& file :
       kubernetes::KustomizeBase(kubernetes::ObjectsOf(job.spec, job.options))) {
    const std::string path = (std::filesystem::path(options.kustomize) / file.name).string();
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, file.text));
    PrintData(path + "\n");
  }
  PrintNote(
      fmt::format("apply it with: kubectl apply -k {}. The Secrets are not in it; make them "
                  "once: {}",
                  options.kustomize, SecretsLine(options, job.options.ns)));
  return absl::OkStatus();
}

}  // namespace

int ManifestsCommand(const ManifestsOptions& options) {
  if (options.secrets && !options.kustomize.empty()) {
    return PrintError("--secrets: Secrets belong into no base of Kustomize; leave out --kustomize",
                      kExitUsage);
  }
  const absl::StatusOr<kubernetes::ManifestJob> job = ReadJob(options);
  if (!job.ok()) return PrintError(Message(job.status()), kExitUsage);
  absl::Status done;
  if (options.secrets) {
    done = PrintSecrets(options, *job);
  } else if (!options.kustomize.empty()) {
    done = WriteBase(options, *job);
  } else {
    PrintData(ManifestsText(options, *job));
    if (options.output == ManifestsOutput::kJson) {
      PrintNote(fmt::format("the Secrets are not in it; make them once: {}",
                            SecretsLine(options, job->options.ns)));
    }
  }
  return done.ok() ? kExitSucceeded : PrintError(done);
}

}  // namespace muster
