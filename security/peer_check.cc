#include "security/peer_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "security/certificate.h"

namespace muster::security {
namespace {

template <typename T>
void DeleteExtra(void*, void* pointer, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<T*>(pointer);
}

/// The index at which OpenSSL stores our check in a context, and our text in a connection.
int CheckIndex() {
  static const int index =
      SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, DeleteExtra<PeerCheck>);
  return index;
}
int RefusalIndex() {
  static const int index =
      SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, DeleteExtra<std::string>);
  return index;
}

void Refuse(SSL* ssl, const PeerCheck& check, std::string text) {
  if (check.refusal != nullptr) *check.refusal = text;
  delete static_cast<std::string*>(SSL_get_ex_data(ssl, RefusalIndex()));
  SSL_set_ex_data(ssl, RefusalIndex(), new std::string(std::move(text)));
}

std::string WhoText(const X509* certificate) {
  const absl::StatusOr<Identity> identity = IdentityOf(certificate);
  return identity.ok() ? IdentityUri(*identity)
                       : fmt::format("'{}'", Excerpt(CommonName(certificate), 100));
}

/// Why OpenSSL does not accept the chain.
std::string ChainText(int error, const X509* certificate) {
  const absl::StatusOr<Validity> validity = ValidityOf(certificate);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format(
          "the certificate of the peer, {}, expired at {}; renew it (`muster run` "
          "does so) and set the clocks of both machines",
          WhoText(certificate), validity.ok() ? TimeText(validity->end) : "?");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format(
          "the certificate of the peer, {}, is not valid before {}; set the clocks "
          "of both machines",
          WhoText(certificate), validity.ok() ? TimeText(validity->begin) : "?");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "the certificate of the peer, {}, is signed by another authority than "
          "ours; it is a process of another job, or one of both uses an old ca.crt",
          WhoText(certificate));
    default:
      return fmt::format("the certificate of the peer, {}, is refused: {}", WhoText(certificate),
                         X509_verify_cert_error_string(error));
  }
}

/// Why the identity in a certificate with a valid chain is not accepted. Empty if it is.
std::string IdentityText(const PeerCheck& check, const X509* certificate) {
  const absl::StatusOr<Identity> identity = IdentityOf(certificate);
  if (!identity.ok()) {
    return fmt::format("the certificate of the peer says no identity: {}",
                       Message(identity.status()));
  }
  if (identity->job_id != check.job_id) {
    return fmt::format("the peer, {}, belongs to another job than ours, {}", IdentityUri(*identity),
                       check.job_id);
  }
  if (std::ranges::find(check.roles, identity->role) != check.roles.end()) return "";
  std::vector<std::string_view> words;
  for (const Role role : check.roles) words.push_back(RoleWord(role));
  return fmt::format(
      "the peer, {}, has the role {}, but only {} may be at the other end; look at "
      "the address and at the files that the peer was given",
      IdentityUri(*identity), RoleWord(identity->role), fmt::join(words, ", "));
}

int Verify(int accepted, X509_STORE_CTX* store) {
  SSL* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* const check =
      static_cast<const PeerCheck*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), CheckIndex()));
  const X509* const certificate = X509_STORE_CTX_get_current_cert(store);
  if (accepted != 1) {
    Refuse(ssl, *check, ChainText(X509_STORE_CTX_get_error(store), certificate));
    return 0;
  }
  if (X509_STORE_CTX_get_error_depth(store) > 0) return 1;
  std::string refusal = IdentityText(*check, certificate);
  if (refusal.empty()) return 1;
  Refuse(ssl, *check, std::move(refusal));
  // The alert for this error, "bad certificate", says more than the one for a failed check of an
  // application.
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  return 0;
}

}  // namespace

void RequirePeer(SSL_CTX* context, PeerCheck check) {
  RefusalIndex();
  SSL_CTX_set_ex_data(context, CheckIndex(), new PeerCheck(std::move(check)));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, Verify);
}

std::string RefusalOf(SSL* ssl) {
  const auto* const text = static_cast<const std::string*>(SSL_get_ex_data(ssl, RefusalIndex()));
  return text == nullptr ? "" : *text;
}

}  // namespace muster::security
