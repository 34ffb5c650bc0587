#pragma once

#include "absl/status/statusor.h"
#include "muster/session.h"
#include "net/tls_engine.h"

namespace muster::internal {

/// How a session's connections are encrypted. Thread-safe; copies share the contexts.
struct SessionTls {
  net::TlsContextSource master, servers;  // empty: plain text
  /// For connections among the members of a group, where both ends have a worker's certificate.
  net::TlsContextSource members_accept, members_connect;
};

/// Reads the files that `options` names. If it names none, all sources are empty. If it names no
/// job, the job is that of the worker's certificate. kInvalidArgument: some of the three files are
/// given, and others are not. Other errors are those of LoadCredentials, and name the file.
absl::StatusOr<SessionTls> MakeSessionTls(const SessionOptions& options);

}  // namespace muster::internal
