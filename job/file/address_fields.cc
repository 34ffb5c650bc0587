// The fields that say where processes listen, and by which names others reach them.
#include "base/words/limits.h"
#include "job/file/field_builder.h"

namespace muster::job_file {

void AddAddressFields(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  using Listen = JobSpec::ServerListen;
  fields->push_back(Make("spec.master.address", Form::kAddress, {}, kAny,
                         Job(&JobSpec::master_address),
                         "Address at which the master listens. Port 0 means a free port, chosen "
                         "once per run. 0.0.0.0 and [::] mean every address of the machine."));
  fields->push_back(
      Default(Make("spec.master.advertise", Form::kHost, {}, kAny, Job(&JobSpec::master_advertise),
                   "Host by which workers, servers and people reach the master."),
              "the host of `address`"));
  fields->push_back(
      Default(Make("spec.replicaSpecs.ps.address", Form::kHost, {}, kAny,
                   Job(&JobSpec::server_listen, &Listen::address), "Host at which servers listen."),
              "the address by which the server reaches the master"));
  fields->push_back(Default(
      Make("spec.replicaSpecs.ps.advertise", Form::kHost, {}, kAny,
           Job(&JobSpec::server_listen, &Listen::advertise),
           "Host by which workers reach servers. A wildcard `address` needs none: the address by "
           "which the server reaches the master is taken."),
      "`address`"));
  fields->push_back(Make("spec.replicaSpecs.ps.ports", Form::kPorts, {}, kAny,
                         Job(&JobSpec::server_listen, &Listen::ports),
                         "Ports at which servers listen, one for each of a server's threads. 0 "
                         "means free ones."));
  fields->push_back(Make("spec.replicaSpecs.ps.joined", Form::kWhole, {0, kServerReplicasMax}, kAny,
                         Job(&JobSpec::servers_joined),
                         "So many of the servers, those with the highest numbers, are started by "
                         "`muster join` on other machines."));
}

}  // namespace muster::job_file
