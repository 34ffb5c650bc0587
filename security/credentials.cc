#include "security/credentials.h"

#include <openssl/err.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/status.h"
#include "security/certificate.h"

namespace muster {
namespace {

using security::Certificate;

absl::StatusOr<Certificate> ReadCertificate(const std::string& path, std::string_view pem) {
  absl::StatusOr<Certificate> certificate = security::ParseCertificate(pem);
  if (certificate.ok()) return certificate;
  return security::Unfit(
      path, fmt::format("it contains no certificate in PEM ({}); put the right file there",
                        Message(certificate.status())));
}

absl::Status CheckTime(const std::string& path, const X509* certificate, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(const security::Validity validity, security::ValidityOf(certificate));
  if (now >= validity.end) {
    return security::Unfit(
        path, fmt::format("the certificate expired at {}; start `muster run` again, which "
                          "renews what it made itself, or put a new one there",
                          security::TimeText(validity.end)));
  }
  if (now < validity.begin) {
    return security::Unfit(
        path, fmt::format("the certificate is not valid before {}, and it is {} on this "
                          "machine; set the clock",
                          security::TimeText(validity.begin), security::TimeText(now)));
  }
  return absl::OkStatus();
}

absl::Status CheckSigner(const CredentialFiles& files, X509* certificate, X509* authority) {
  const int issued = X509_check_issued(authority, certificate);
  const int verified =
      issued == X509_V_OK ? X509_verify(certificate, X509_get0_pubkey(authority)) : 0;
  ERR_clear_error();
  if (verified == 1) return absl::OkStatus();
  return security::Unfit(
      files.certificate,
      fmt::format("the authority in {} did not sign this certificate; take both files "
                  "from the same directory",
                  files.ca));
}

absl::Status CheckExpected(const std::string& path, const Identity& identity,
                           const ExpectedIdentity& expected) {
  if (!expected.job_id.empty() && identity.job_id != expected.job_id) {
    return security::Unfit(
        path, fmt::format("the certificate belongs to job {}, but this job is {}; use the "
                          "files of this job",
                          identity.job_id, expected.job_id));
  }
  if (expected.role.has_value() && identity.role != *expected.role) {
    return security::Unfit(
        path,
        fmt::format("the certificate is one of role {}, but {} is needed; use {}.crt",
                    RoleWord(identity.role), RoleWord(*expected.role), RoleWord(*expected.role)));
  }
  return absl::OkStatus();
}

}  // namespace

CredentialFiles CredentialFilesOf(const std::string& directory, Role role) {
  const std::string stem = fmt::format("{}/{}", directory, RoleWord(role));
  return {.ca = directory + "/ca.crt", .certificate = stem + ".crt", .key = stem + ".key"};
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot read the key {}", path));
  }
  const mode_t forbidden = info.st_uid == 0 ? (S_IWGRP | S_IXGRP | S_IRWXO) : (S_IRWXG | S_IRWXO);
  if ((info.st_mode & forbidden) != 0) {
    return security::Unfit(
        path, fmt::format("the key has mode {:04o}, so others may have read it; if nobody "
                          "has, run `chmod 600 {}`, otherwise make new certificates",
                          info.st_mode & 07777, path));
  }
  return ReadFile(path, security::kPemBytesMax);
}

absl::StatusOr<std::string> LoadAuthority(const std::string& path, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(std::string pem, ReadFile(path, security::kPemBytesMax));
  MUSTER_ASSIGN_OR_RETURN(const Certificate authority, ReadCertificate(path, pem));
  MUSTER_RETURN_IF_ERROR(CheckTime(path, authority.get(), now));
  return pem;
}

absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files,
                                            const ExpectedIdentity& expected, WallTime now) {
  Credentials loaded;
  MUSTER_ASSIGN_OR_RETURN(loaded.ca_pem, LoadAuthority(files.ca, now));
  MUSTER_ASSIGN_OR_RETURN(loaded.certificate_pem,
                          ReadFile(files.certificate, security::kPemBytesMax));
  MUSTER_ASSIGN_OR_RETURN(loaded.key_pem, ReadKeyFile(files.key));
  MUSTER_ASSIGN_OR_RETURN(const Certificate authority, ReadCertificate(files.ca, loaded.ca_pem));
  MUSTER_ASSIGN_OR_RETURN(const Certificate certificate,
                          ReadCertificate(files.certificate, loaded.certificate_pem));
  const absl::StatusOr<security::Key> key = security::ParseKey(loaded.key_pem);
  if (!key.ok()) {
    return security::Unfit(files.key,
                           fmt::format("it contains no key in PEM ({}); put the right file there",
                                       Message(key.status())));
  }
  if (X509_check_private_key(certificate.get(), key->get()) != 1) {
    ERR_clear_error();
    return security::Unfit(files.key,
                           fmt::format("the key does not belong to the certificate {}; take both "
                                       "from the same directory",
                                       files.certificate));
  }
  MUSTER_RETURN_IF_ERROR(CheckSigner(files, certificate.get(), authority.get()));
  MUSTER_RETURN_IF_ERROR(CheckTime(files.certificate, certificate.get(), now));
  absl::StatusOr<Identity> identity = security::IdentityOf(certificate.get());
  if (!identity.ok()) return security::Unfit(files.certificate, Message(identity.status()));
  MUSTER_RETURN_IF_ERROR(CheckExpected(files.certificate, *identity, expected));
  loaded.identity = *std::move(identity);
  MUSTER_ASSIGN_OR_RETURN(const security::Validity validity,
                          security::ValidityOf(certificate.get()));
  loaded.expires = validity.end;
  return loaded;
}

}  // namespace muster
