#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/identity.h"
#include "security/openssl_handles.h"

/// Certificates and keys in PEM, and the contents of certificates. Thread-safe functions.
namespace muster::security {

/// The size of the largest file that is read.
inline constexpr uint64_t kPemBytesMax = 1 << 20;

/// FailedPrecondition: "PATH: WHAT". `what` says what is wrong with the file, and what to do.
absl::Status Unfit(const std::string& path, std::string_view what);

absl::StatusOr<Certificate> ParseCertificate(std::string_view pem);
absl::StatusOr<Key> ParseKey(std::string_view pem);
absl::StatusOr<std::string> CertificatePem(const X509* certificate);
absl::StatusOr<std::string> KeyPem(const EVP_PKEY* key);

/// Makes a new key on the curve P-256.
absl::StatusOr<Key> MakeKey();

struct Validity {
  WallTime begin{0};
  WallTime end{0};
};
absl::StatusOr<Validity> ValidityOf(const X509* certificate);

/// True if at most a third of the certificate's life is left at `now`.
bool ExpiresSoon(const Validity& validity, WallTime now);

/// "2026-01-31T12:00:00Z".
std::string TimeText(WallTime time);

/// The identity in the only "muster:" URI of a certificate. InvalidArgument if there is none, or
/// several.
absl::StatusOr<Identity> IdentityOf(const X509* certificate);

/// The host names and addresses of a certificate, in its order.
std::vector<std::string> HostsOf(const X509* certificate);

/// True if the certificate is for this host name or address.
bool CoversHost(X509* certificate, const std::string& host);

/// The contents of a new certificate.
struct CertificateContents {
  Identity identity;
  /// Names, and addresses like "10.0.0.1" or "::1", in addition to the name of the identity.
  std::vector<std::string> hosts;
  Validity validity;
};
/// Makes a certificate for the public part of `key`. It is signed by `authority` with
/// `authority_key`.
absl::StatusOr<Certificate> MakeCertificate(const CertificateContents& contents, EVP_PKEY* key,
                                            X509* authority, EVP_PKEY* authority_key);
/// Makes the certificate of a job's authority, signed with its own key. Its common name is the
/// job's id.
absl::StatusOr<Certificate> MakeAuthority(const std::string& job_id, Validity validity,
                                          EVP_PKEY* key);
/// The common name of the certificate's subject. Empty if it has none.
std::string CommonName(const X509* certificate);

}  // namespace muster::security
