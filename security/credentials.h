#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/identity.h"

/// The files with which a process proves who it is. Thread-safe functions.
namespace muster {

/// Paths, all in PEM.
struct CredentialFiles {
  std::string ca;           // the certificate of the job's authority
  std::string certificate;  // our own
  std::string key;          // the key of `certificate`
  friend bool operator==(const CredentialFiles&, const CredentialFiles&) = default;
};

/// ca.crt, ROLE.crt and ROLE.key in `directory`.
CredentialFiles CredentialFilesOf(const std::string& directory, Role role);

/// What a process must be able to prove.
struct ExpectedIdentity {
  std::string job_id;  // empty: of any job
  std::optional<Role> role;
};

/// The contents of the files, checked.
struct Credentials {
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
  Identity identity;
  WallTime expires{0};
};

/// Reads and checks the files. Errors name the file, say what is wrong and what to do: NotFound
/// (a file is missing) or FailedPrecondition (others may read the key; the key is not the
/// certificate's; another authority signed the certificate; the certificate is not valid at `now`;
/// it says another job or role).
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files,
                                            const ExpectedIdentity& expected, WallTime now);

/// The certificate of an authority in `path`, in PEM; FailedPrecondition unless it is valid at
/// `now`.
absl::StatusOr<std::string> LoadAuthority(const std::string& path, WallTime now);

/// The text of a private key. FailedPrecondition unless only the owner may read it, or it belongs
/// to root and at most its group may read it, too (a mounted secret).
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace muster
