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
  std::string job_file;  // the unchanged text of the job file
  /// Whether the job's Role may change limits of a pod in place. If not, a node with new limits is
  /// started again.
  bool resizes_in_place = true;
};

/// Values from the command line. If empty, those of the job file count.
struct ManifestFlags {
  std::string ns;
  std::string image;
};

/// A job that can run on Kubernetes.
struct ManifestJob {
  JobSpec spec;
  ManifestOptions options;
};

/// Reads the text of a job file as the job's pods will. It also checks what Kubernetes demands
/// beyond docs/job-file.md: the name fits into names of Services, an image is named, no path is
/// relative to the job file (in pods, its folder has no other files), the user has given no
/// certificates, and the namespace is a DNS label. The namespace comes from the flag, or else from
/// spec.kubernetes.namespace, or else it is "default". kInvalidArgument lists every error that was
/// found.
absl::StatusOr<ManifestJob> ReadManifestJob(std::string_view text, const std::string& file_name,
                                            const ManifestFlags& flags);

/// A SHA-256 in hexadecimal. It differs if the job file or the image differs.
std::string FileDigestOf(const ManifestOptions& options);

/// Every object except the Secrets, in the order in which they should be applied: ServiceAccount,
/// Role, RoleBinding, ConfigMap, PersistentVolumeClaims, Service, Job. The arguments come from
/// ReadManifestJob.
std::vector<nlohmann::json> ObjectsOf(const JobSpec& spec, const ManifestOptions& options);

/// The secrets of a job.
struct JobSecrets {
  /// ca.crt, ca.key, ROLE.crt and ROLE.key with their contents. The names are those of
  /// security/credentials.h and security/certificate_authority.h.
  std::map<std::string, std::string> files;
  std::string token;
  std::string job_id;
};
/// Two Secrets. The first is for the pods. The second has the authority's key and a copy of the
/// job's id, and no pod has it.
std::vector<nlohmann::json> SecretsOf(const JobSpec& spec, const ManifestOptions& options,
                                      const JobSecrets& secrets);
/// The reverse, from both Secrets of the API server. kFailedPrecondition if a key is missing or is
/// no base64; it says which, and what to do.
absl::StatusOr<JobSecrets> SecretsFrom(const nlohmann::json& pods, const nlohmann::json& authority);
/// The job's id in the Secret of the authority. A job needs it to continue from its state. Empty if
/// there is none.
std::string KeptJobId(const nlohmann::json& authority);
/// Says what helps if a Secret of a job cannot be used. It is the end of an error text.
std::string AdviceFor(const nlohmann::json& secret);

}  // namespace muster::kubernetes
