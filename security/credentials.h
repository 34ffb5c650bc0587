#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/identity.h"

/// The files with which a process proves who it is. Thread-safe functions.
namespace muster {

/// The paths of three files in PEM.
struct CredentialFiles {
  std::string ca;           // the certificate of the job's authority
  std::string certificate;  // our own certificate
  std::string key;          // the key of `certificate`
  friend bool operator==(const CredentialFiles&, const CredentialFiles&) = default;
};

/// ca.crt, ROLE.crt and ROLE.key in `directory`.
CredentialFiles CredentialFilesOf(const std::string& directory, Role role);

/// The identity that a process must be able to prove.
struct ExpectedIdentity {
  std::string job_id;  // empty: any job
  std::optional<Role> role;
};

/// The contents of the files, after the checks.
struct Credentials {
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
  Identity identity;
  WallTime expires{0};
};

/// Reads and checks the files. Errors name the file, and say what is wrong and what to do.
/// NotFound: a file is missing. FailedPrecondition: others may read the key, the key does not
/// belong to the certificate, another authority signed the certificate, the certificate is not
/// valid at `now`, or it is for another job or role.
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files,
                                            const ExpectedIdentity& expected, WallTime now);

/// Reads the certificate of an authority from `path`, in PEM. FailedPrecondition unless it is valid
/// at `now`.
absl::StatusOr<std::string> LoadAuthority(const std::string& path, WallTime now);

/// Reads the text of a private key. FailedPrecondition unless only the owner may read the file. If
/// root owns it, its group may read it, too (a mounted secret).
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace muster
