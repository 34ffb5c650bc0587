#include "job/security.h"

#include <algorithm>

#include "base/address.h"

namespace muster {

std::vector<std::string> ListenAddresses(const JobSpec& spec) {
  std::vector<std::string> addresses = {spec.master_address, JoinHostPort(spec.scaler.host, 0)};
  if (!spec.server_listen.address.empty()) {
    addresses.push_back(JoinHostPort(spec.server_listen.address, 0));
  }
  return addresses;
}

Transport TransportOf(const SecuritySpec& security, const std::vector<std::string>& addresses) {
  if (security.tls == TlsUse::kAlways) return Transport::kTls;
  const bool local = std::ranges::all_of(addresses, [](std::string_view address) {
    return IsLoopbackHost(address.substr(0, address.rfind(':')));
  });
  if (local) return Transport::kPlainOnLoopback;
  return security.insecure ? Transport::kPlainAndInsecure : Transport::kTls;
}

Transport TransportOf(const JobSpec& spec) {
  return TransportOf(spec.security, ListenAddresses(spec));
}

bool UsesTls(const JobSpec& spec) {
  return TransportOf(spec) == Transport::kTls;
}

}  // namespace muster
