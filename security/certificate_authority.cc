#include "security/certificate_authority.h"

#include <openssl/err.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "security/certificate.h"
#include "security/credentials.h"

namespace muster {
namespace {

using security::Certificate;
using security::Key;
using security::Validity;

/// A certificate is valid from this long before now on, because clocks of machines differ.
constexpr std::chrono::minutes kBeforeNow{5};

/// One directory of certificates. It is used once, by one thread.
class Directory {
 public:
  Directory(const CertificateOptions& options, WallTime now) : options_(options), now_(now) {}

  absl::StatusOr<std::vector<std::string>> Ensure() {
    MUSTER_RETURN_IF_ERROR(MakeDirectories(options_.directory));
    MUSTER_RETURN_IF_ERROR(MakePrivate(options_.directory));
    MUSTER_RETURN_IF_ERROR(EnsureAuthority());
    for (const Role role : kRoles) MUSTER_RETURN_IF_ERROR(EnsureRole(role));
    return std::move(written_);
  }

 private:
  std::string Path(std::string_view name) const {
    return fmt::format("{}/{}", options_.directory, name);
  }

  Validity ValidFor(std::chrono::hours life) const { return {now_ - kBeforeNow, now_ + life}; }

  absl::Status Write(const std::string& name, const std::string& text, FileAccess access) {
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(Path(name), text, access));
    written_.push_back(name);
    return absl::OkStatus();
  }

  absl::Status WriteCertificate(const std::string& name, const X509* certificate) {
    MUSTER_ASSIGN_OR_RETURN(const std::string pem, security::CertificatePem(certificate));
    return Write(name, pem, FileAccess::kUmask);
  }

  absl::StatusOr<Key> WriteNewKey(const std::string& name) {
    MUSTER_ASSIGN_OR_RETURN(Key key, security::MakeKey());
    MUSTER_ASSIGN_OR_RETURN(const std::string pem, security::KeyPem(key.get()));
    MUSTER_RETURN_IF_ERROR(Write(name, pem, FileAccess::kOwnerOnly));
    return key;
  }

  /// Null if there is no such file.
  absl::StatusOr<Key> FindKey(const std::string& name) const {
    const absl::StatusOr<std::string> pem = ReadKeyFile(Path(name));
    if (absl::IsNotFound(pem.status())) return Key();
    MUSTER_RETURN_IF_ERROR(pem.status());
    absl::StatusOr<Key> key = security::ParseKey(*pem);
    if (key.ok()) return key;
    return security::Unfit(Path(name),
                           fmt::format("it contains no key in PEM ({}); remove it, then "
                                       "`muster run` makes a new one",
                                       Message(key.status())));
  }

  /// Null if there is no such file. It checks that the certificate belongs to `key`.
  absl::StatusOr<Certificate> FindCertificate(const std::string& name, const EVP_PKEY* key) const {
    const absl::StatusOr<std::string> pem = ReadFile(Path(name), security::kPemBytesMax);
    if (absl::IsNotFound(pem.status())) return Certificate();
    MUSTER_RETURN_IF_ERROR(pem.status());
    absl::StatusOr<Certificate> certificate = security::ParseCertificate(*pem);
    if (!certificate.ok()) {
      return security::Unfit(Path(name),
                             fmt::format("it contains no certificate in PEM ({}); remove it, "
                                         "then `muster run` makes a new one",
                                         Message(certificate.status())));
    }
    if (key != nullptr && X509_check_private_key(certificate->get(), key) != 1) {
      ERR_clear_error();
      return security::Unfit(Path(name),
                             "its key is not the one in the file beside it; remove both, then "
                             "`muster run` makes new ones");
    }
    return certificate;
  }

  absl::Status EnsureAuthority() {
    MUSTER_ASSIGN_OR_RETURN(authority_key_, FindKey("ca.key"));
    MUSTER_ASSIGN_OR_RETURN(authority_, FindCertificate("ca.crt", authority_key_.get()));
    if (authority_ != nullptr && authority_key_ == nullptr) {
      return security::Unfit(
          Path("ca.key"),
          fmt::format("it is missing, so no certificate can be made or renewed; put it "
                      "back, or remove {}: then `muster run` makes everything new",
                      options_.directory));
    }
    if (authority_ != nullptr && security::CommonName(authority_.get()) != options_.job_id) {
      return security::Unfit(
          Path("ca.crt"),
          fmt::format("it belongs to job {}, but this job is {}; remove {}: then `muster "
                      "run` makes everything new",
                      security::CommonName(authority_.get()), options_.job_id, options_.directory));
    }
    if (authority_ != nullptr) {
      MUSTER_ASSIGN_OR_RETURN(const Validity validity, security::ValidityOf(authority_.get()));
      if (!security::ExpiresSoon(validity, now_)) return absl::OkStatus();
    }
    if (authority_key_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(authority_key_, WriteNewKey("ca.key"));
    }
    MUSTER_ASSIGN_OR_RETURN(
        authority_, security::MakeAuthority(options_.job_id, ValidFor(options_.authority_life),
                                            authority_key_.get()));
    return WriteCertificate("ca.crt", authority_.get());
  }

  std::vector<std::string> HostsFor(Role role) const {
    const auto at = options_.hosts.find(role);
    return at == options_.hosts.end() ? std::vector<std::string>() : at->second;
  }

  /// Checks a certificate that was found. Returns true if it must be made again.
  absl::StatusOr<bool> MustRenew(Role role, X509* certificate) const {
    const std::string path = Path(fmt::format("{}.crt", RoleWord(role)));
    const absl::StatusOr<Identity> identity = security::IdentityOf(certificate);
    if (!identity.ok() || identity->job_id != options_.job_id || identity->role != role) {
      return security::Unfit(
          path, fmt::format("it belongs to {}, but {} is needed; remove it, then `muster "
                            "run` makes a new one",
                            identity.ok() ? IdentityUri(*identity) : "nobody",
                            IdentityUri(IdentityFor(role))));
    }
    const bool signed_by_us = X509_verify(certificate, authority_key_.get()) == 1;
    ERR_clear_error();
    if (!signed_by_us) {
      return security::Unfit(
          path, fmt::format("the authority in {} did not sign it; remove it, then `muster "
                            "run` makes a new one",
                            Path("ca.crt")));
    }
    MUSTER_ASSIGN_OR_RETURN(const Validity validity, security::ValidityOf(certificate));
    return security::ExpiresSoon(validity, now_) ||
           !std::ranges::all_of(HostsFor(role), [certificate](const std::string& host) {
             return security::CoversHost(certificate, host);
           });
  }

  Identity IdentityFor(Role role) const {
    return {.job_id = options_.job_id, .role = role, .name = std::string(RoleWord(role))};
  }

  absl::Status EnsureRole(Role role) {
    const std::string stem(RoleWord(role));
    MUSTER_ASSIGN_OR_RETURN(Key key, FindKey(stem + ".key"));
    MUSTER_ASSIGN_OR_RETURN(const Certificate found, FindCertificate(stem + ".crt", key.get()));
    if (found != nullptr) {
      MUSTER_ASSIGN_OR_RETURN(const bool renew, MustRenew(role, found.get()));
      if (!renew && key != nullptr) return absl::OkStatus();
    }
    if (key == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(key, WriteNewKey(stem + ".key"));
    }
    MUSTER_ASSIGN_OR_RETURN(
        const Certificate made,
        security::MakeCertificate({.identity = IdentityFor(role),
                                   .hosts = HostsFor(role),
                                   .validity = ValidFor(options_.certificate_life)},
                                  key.get(), authority_.get(), authority_key_.get()));
    return WriteCertificate(stem + ".crt", made.get());
  }

  const CertificateOptions& options_;
  const WallTime now_;
  Key authority_key_;
  Certificate authority_;
  std::vector<std::string> written_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> EnsureCertificates(const CertificateOptions& options,
                                                            WallTime now) {
  return Directory(options, now).Ensure();
}

}  // namespace muster
