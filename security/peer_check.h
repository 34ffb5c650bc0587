#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

#include "security/identity.h"

/// The check of a peer's certificate within OpenSSL's handshake.
namespace muster::security {

struct PeerCheck {
  std::string job_id;
  /// The roles that the peer may have.
  std::vector<Role> roles;
  /// Gets the text of RefusalOf, for a context whose connections the caller does not see. May be
  /// null.
  std::string* refusal = nullptr;
};

/// From now on, in every handshake of `context`, the peer must show a certificate that its
/// authority has signed, that is valid now, and whose identity has the right job and one of the
/// roles.
void RequirePeer(SSL_CTX* context, PeerCheck check);

/// Why the check of this connection's peer failed. Empty if it did not.
std::string RefusalOf(SSL* ssl);

}  // namespace muster::security
