#pragma once

#include "absl/status/statusor.h"
#include "muster/session.h"
#include "net/tls_engine.h"

namespace muster::internal {

/// How a session's connections are encrypted. Thread-safe; copies share the contexts.
struct SessionTls {
  net::TlsContextSource master;   // empty: plain text
  net::TlsContextSource servers;  // the same
  /// Of connections among the members of a group: both ends have a worker's certificate.
  net::TlsContextSource members_accept, members_connect;
};

/// Reads the files that `options` names; without any, both sources are empty. The job is that of
/// the options, or of the worker's certificate if they name none. kInvalidArgument: some of the
/// three files are given, and others are not. Otherwise errors as of LoadCredentials, which
/// name the file.
absl::StatusOr<SessionTls> MakeSessionTls(const SessionOptions& options);

}  // namespace muster::internal
