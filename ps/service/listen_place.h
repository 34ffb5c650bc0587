#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/address.h"

namespace muster::ps {

/// Where a server is to listen, as its operator says.
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

/// Asks the name service and the routing table. kUnavailable: names or routes are not there yet;
/// kInvalidArgument or kFailedPrecondition: they would be wrong later, too.
absl::StatusOr<ListenPlace> FindListenPlace(const ListenWish& wish,
                                            const std::string& master_address);

}  // namespace muster::ps
