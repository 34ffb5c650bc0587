#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_spec.h"

/// A job whose processes are pods of Kubernetes: where they listen, where their files are, and how
/// its objects are called. The program that makes the objects and the processes in the pods share
/// these facts.
namespace muster {

/// The ports of the master (gRPC) and of the scaler (REST) in the job's own pod.
inline constexpr uint16_t kInClusterMasterPort = 7171;
inline constexpr uint16_t kInClusterRestPort = 7172;
/// The port of an export, on the loopback of its own pod.
inline constexpr uint16_t kInClusterExportPort = 7173;

/// Files that are mounted in every pod of the job: job.yaml, and the templates of its pods.
inline constexpr char kInClusterJobFile[] = "/etc/muster/job/job.yaml";
inline constexpr char kInClusterPodsFile[] = "/etc/muster/job/pods.json";
/// The digest of the job file and the image. The job's own pod also has it in a variable. If both
/// differ, the ConfigMap does not belong to the pod's Job.
inline constexpr char kInClusterDigestFile[] = "/etc/muster/job/digest";
inline constexpr char kDigestVariable[] = "MUSTER_JOB_FILE_DIGEST";
/// The folder with ca.crt, ROLE.crt and ROLE.key, for the roles that the pod needs.
inline constexpr char kInClusterCertificates[] = "/etc/muster/tls";
/// Exists in the job's own pod and in that of an export.
inline constexpr char kInClusterTokenFile[] = "/etc/muster/token/token";
/// Volumes for the state directories of jobs, and for their snapshots.
inline constexpr char kInClusterState[] = "/var/lib/muster";
inline constexpr char kInClusterSnapshots[] = "/var/lib/muster-snapshots";
/// An empty volume in the pod of an export, to which it writes.
inline constexpr char kInClusterExports[] = "/var/lib/muster-export";

/// Variables in the pods: the address of the pod itself, and the name of its machine.
inline constexpr char kPodAddressVariable[] = "MUSTER_POD_IP";
inline constexpr char kPodMachineVariable[] = "MUSTER_HOST";

/// The names of a job's objects. `job` is the job's name.
struct InClusterNames {
  explicit InClusterNames(const std::string& job);

  std::string job;              // the Job
  std::string muster;           // ConfigMap, Secret, ServiceAccount, Role, RoleBinding
  std::string authority;        // the Secret with the authority's key; no pod has it
  std::string master_service;   // headless, for the job's own pod
  std::string state_claim;      // PersistentVolumeClaim
  std::string snapshots_claim;  // PersistentVolumeClaim
  std::string export_pod;       // exists while `muster export` runs
};

/// The host name with which pods and clients in the cluster reach the job's own pod.
std::string InClusterHost(const std::string& job, const std::string& ns);
/// All names of the job's REST interface there, also with the usual domain of clusters.
std::vector<std::string> InClusterRestNames(const std::string& job, const std::string& ns);

/// Replaces addresses, certificates and paths of the job file by those that are right in the pods
/// of the job in namespace `ns`. `pod_address` is the address of the calling pod. Servers listen
/// there, and it decides whether the other addresses are IPv4 or IPv6. It may be empty where that
/// does not matter. If the job file names S3 or an absolute folder for snapshots, that stays.
void PutInCluster(const std::string& ns, const std::string& pod_address, JobSpec* spec);

}  // namespace muster
