#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_spec.h"

/// A job whose processes are pods of Kubernetes: where they listen, where their files are, and how
/// its objects are called. The program that makes the objects and the processes inside the pods
/// share these facts.
namespace muster {

/// Of the master (gRPC) and of the scaler (REST), in the job's own pod.
inline constexpr uint16_t kInClusterMasterPort = 7171;
inline constexpr uint16_t kInClusterRestPort = 7172;
/// Of an export, on the loopback of its own pod.
inline constexpr uint16_t kInClusterExportPort = 7173;

/// Mounted in every pod of the job: job.yaml, and the templates of its pods.
inline constexpr char kInClusterJobFile[] = "/etc/muster/job/job.yaml";
inline constexpr char kInClusterPodsFile[] = "/etc/muster/job/pods.json";
/// Of the job file and the image. The job's own pod has it in a variable, too: if they differ, the
/// ConfigMap is not that of the pod's Job.
inline constexpr char kInClusterDigestFile[] = "/etc/muster/job/digest";
inline constexpr char kDigestVariable[] = "MUSTER_JOB_FILE_DIGEST";
/// ca.crt, ROLE.crt and ROLE.key, of the roles that the pod needs.
inline constexpr char kInClusterCertificates[] = "/etc/muster/tls";
/// In the job's own pod, and in that of an export.
inline constexpr char kInClusterTokenFile[] = "/etc/muster/token/token";
/// Volumes: the state directories of jobs, and their snapshots.
inline constexpr char kInClusterState[] = "/var/lib/muster";
inline constexpr char kInClusterSnapshots[] = "/var/lib/muster-snapshots";
/// In the pod of an export: an empty volume that it writes to.
inline constexpr char kInClusterExports[] = "/var/lib/muster-export";

/// Variables of the pods: the address of the pod itself, and the name of the machine that it is on.
inline constexpr char kPodAddressVariable[] = "MUSTER_POD_IP";
inline constexpr char kPodMachineVariable[] = "MUSTER_HOST";

/// The names of a job's objects. `job` is the job's name.
struct InClusterNames {
  explicit InClusterNames(const std::string& job);

  std::string job;              // the Job
  std::string muster;           // ConfigMap, Secret, ServiceAccount, Role, RoleBinding
  std::string authority;        // the Secret with the key of the job's authority; no pod has it
  std::string master_service;   // headless, of the job's own pod
  std::string state_claim;      // PersistentVolumeClaim
  std::string snapshots_claim;  // the same
  std::string export_pod;       // while `muster export` runs
};

/// The host by which pods and clients in the cluster reach the job's own pod.
std::string InClusterHost(const std::string& job, const std::string& ns);
/// All names of its REST interface there: also with the domain that clusters usually have.
std::vector<std::string> InClusterRestNames(const std::string& job, const std::string& ns);

/// Changes what the job file says of addresses, certificates and paths into what holds in the pods
/// of the job in namespace `ns`. `pod_address` is the address of the calling pod, at which servers
/// listen, and of whose kind, IPv4 or IPv6, the other addresses are; it may be empty where that
/// does not matter. Snapshots stay where they are if the job file names S3 or an absolute folder.
void PutInCluster(const std::string& ns, const std::string& pod_address, JobSpec* spec);

}  // namespace muster
