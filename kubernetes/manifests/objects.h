#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "job/job_spec.h"

/// The objects of a job on Kubernetes. Pure, thread-safe functions.
namespace muster::kubernetes {

struct ManifestOptions {
  std::string ns;        // of all objects
  std::string image;     // of every pod
  std::string job_file;  // the text of the job file, word for word
  /// Whether the job's Role has the right to change limits of a pod in place. Without it, a node
  /// with new limits is started again.
  bool resizes_in_place = true;
};

/// What the command line says; empty: what the job file says.
struct ManifestFlags {
  std::string ns;
  std::string image;
};

/// A job that can run on Kubernetes.
struct ManifestJob {
  JobSpec spec;
  ManifestOptions options;
};

/// Reads the text of a job file as the job's pods will, and checks what Kubernetes demands beyond
/// docs/job-file.md: the name fits into names of Services, an image is named, no path is relative
/// to the job file (whose folder in pods has no other files), no certificates of the user's own,
/// and the namespace is a DNS label. The namespace is the flag, else spec.kubernetes.namespace,
/// else "default". kInvalidArgument with every error that was found.
absl::StatusOr<ManifestJob> ReadManifestJob(std::string_view text, const std::string& file_name,
                                            const ManifestFlags& flags);

/// Tells the jobs of two job files or images apart: a SHA-256 in hexadecimal.
std::string FileDigestOf(const ManifestOptions& options);

/// Every object but the Secrets, in the order in which one applies them: ServiceAccount, Role,
/// RoleBinding, ConfigMap, PersistentVolumeClaims, Service, Job. Arguments: of ReadManifestJob.
std::vector<nlohmann::json> ObjectsOf(const JobSpec& spec, const ManifestOptions& options);

/// What is secret in a job.
struct JobSecrets {
  /// ca.crt, ca.key, ROLE.crt and ROLE.key with their contents, as security/credentials.h and
  /// security/certificate_authority.h call the files.
  std::map<std::string, std::string> files;
  std::string token;
  std::string job_id;
};
/// The Secret of the pods, and the one with the authority's key and once more the job's id, which
/// no pod has.
std::vector<nlohmann::json> SecretsOf(const JobSpec& spec, const ManifestOptions& options,
                                      const JobSecrets& secrets);
/// The reverse, from both Secrets as the API server shows them. kFailedPrecondition: a key is
/// missing or is no base64; says which, and what to do.
absl::StatusOr<JobSecrets> SecretsFrom(const nlohmann::json& pods, const nlohmann::json& authority);
/// The job's id in the Secret of the authority, which a job needs to continue from its state; empty
/// if there is none.
std::string KeptJobId(const nlohmann::json& authority);
/// What helps if a Secret of a job cannot be used, as the end of an error's text.
std::string AdviceFor(const nlohmann::json& secret);

}  // namespace muster::kubernetes
