#include "ps/service/listen_place.h"

#include <fmt/format.h>

#include "base/status.h"

namespace muster::ps {

absl::StatusOr<ListenPlace> FindListenPlace(const ListenWish& wish,
                                            const std::string& master_address) {
  ListenPlace place{.host = "", .advertise = WithoutBrackets(wish.advertise), .ports = wish.ports};
  if (IsWildcardHost(place.advertise)) {
    return absl::InvalidArgumentError(fmt::format(
        "no process can connect to {}; advertise a name or an address", place.advertise));
  }
  const bool wildcard = IsWildcardHost(wish.address);
  const bool needs_route = wish.address.empty() || (wildcard && place.advertise.empty());
  std::string route;
  if (needs_route) {
    MUSTER_ASSIGN_OR_RETURN(route, LocalAddressTowards(master_address));
  }
  if (wish.address.empty()) {
    place.host = route;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const auto numbers, ResolveHost(wish.address));
    place.host = numbers.front();
  }
  if (place.advertise.empty()) {
    place.advertise = needs_route ? route : WithoutBrackets(wish.address);
  }
  if (!IsLoopbackHost(place.host) && !wish.tls && !wish.insecure) {
    return absl::FailedPreconditionError(fmt::format(
        "this server would listen at {}, which is not loopback, so its connections must be TLS: "
        "name "
        "the folder of the job's certificates with --tls. In a network that you trust, allow plain "
        "text with --insecure",
        place.host));
  }
  return place;
}

}  // namespace muster::ps
