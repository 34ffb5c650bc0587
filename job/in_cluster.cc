#include "job/in_cluster.h"

#include "base/address.h"
#include "store/names/place.h"

namespace muster {

InClusterNames::InClusterNames(const std::string& job)
    : job(job),
      muster(job + "-muster"),
      authority(job + "-muster-ca"),
      master_service(job + "-master"),
      state_claim(job + "-state"),
      snapshots_claim(job + "-snapshots"),
      export_pod(job + "-export") {}

std::string InClusterHost(const std::string& job, const std::string& ns) {
  return InClusterNames(job).master_service + "." + ns + ".svc";
}

std::vector<std::string> InClusterRestNames(const std::string& job, const std::string& ns) {
  const std::string host = InClusterHost(job, ns);
  return {host, host + ".cluster.local"};
}

void PutInCluster(const std::string& ns, const std::string& pod_address, JobSpec* spec) {
  // "::" accepts both kinds of connections, but a cluster with only IPv4 may have no IPv6 at all.
  const bool ipv6 = pod_address.find(':') != std::string::npos;
  const std::string everywhere = ipv6 ? "::" : "0.0.0.0";
  spec->master_address = JoinHostPort(everywhere, kInClusterMasterPort);
  spec->master_advertise = InClusterHost(spec->name, ns);
  spec->scaler.host = everywhere;
  spec->scaler.advertise = InClusterHost(spec->name, ns);
  spec->scaler.port = kInClusterRestPort;
  spec->server_listen = {.address = pod_address, .advertise = pod_address};
  spec->security = {.tls = TlsUse::kAlways, .certificates = kInClusterCertificates};
  spec->state_directory = std::string(kInClusterState) + "/" + spec->name;
  // A relative path begins in the folder of the job file, which is read-only here.
  const bool relative = spec->snapshot_directory.starts_with(spec->base_directory + "/");
  if (!IsS3Place(spec->snapshot_directory) && relative) {
    spec->snapshot_directory = std::string(kInClusterSnapshots) + "/" + spec->name;
  }
}

}  // namespace muster
