#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/address.h"

namespace muster::ps {

/// Where the operator wants a server to listen.
struct ListenWish {
  std::string address;    // a host; empty: the address by which this machine reaches the master
  std::string advertise;  // a host; empty: `address`, or that of the master's side if it is none
  PortRange ports;
  /// Connections are TLS.
  bool tls = false;
  /// Plain text is allowed on addresses that are not loopback.
  bool insecure = false;
};

struct ListenPlace {
  std::string host;       // a number
  std::string advertise;  // a name or a number
  PortRange ports;
};

/// Asks the name service and the routing table. kUnavailable: names or routes are not there yet.
/// kInvalidArgument or kFailedPrecondition: a later call would fail, too.
absl::StatusOr<ListenPlace> FindListenPlace(const ListenWish& wish,
                                            const std::string& master_address);

}  // namespace muster::ps
