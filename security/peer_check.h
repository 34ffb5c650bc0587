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
  /// Gets what RefusalOf says, for a context whose connections the caller does not see; may be
  /// null.
  std::string* refusal = nullptr;
};

/// From now on, every handshake of `context` needs a certificate of the peer that its authority
/// signed, that is valid now, and whose identity is of the job and of one of the roles.
void RequirePeer(SSL_CTX* context, PeerCheck check);

/// Why the check of this connection's peer failed; empty if it did not.
std::string RefusalOf(SSL* ssl);

}  // namespace muster::security
