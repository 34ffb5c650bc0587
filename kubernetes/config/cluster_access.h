#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::kubernetes {

/// Certificates or a key: a file, or the PEM text itself. A file is read whenever it is needed,
/// because other programs renew it. If both are empty, there is none.
struct PemSource {
  std::string path;
  std::string text;
  bool empty() const { return path.empty() && text.empty(); }
  friend bool operator==(const PemSource&, const PemSource&) = default;
};

/// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  /// If it has a '/', it is a path. Otherwise it is looked up in PATH.
  std::string command;
  std::vector<std::string> arguments;
  /// Variables that are added to our own environment.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string api_version;
  bool wants_cluster = false;
  /// What the user sees if the command is missing; may be empty.
  std::string install_hint;
  friend bool operator==(const ExecPlugin&, const ExecPlugin&) = default;
};

/// How to reach an API server, and as whom. A value without behaviour. It may contain secrets, so
/// it is never printed.
struct ClusterAccess {
  /// A name, an IPv4 address, or an IPv6 address without brackets.
  std::string host;
  uint16_t port = 443;
  /// Comes before every path ("/k8s/clusters/c1"). Empty, or begins with '/' and does not end with
  /// it.
  std::string path_prefix;
  /// The name that the server's certificate must have. If empty, it is `host`.
  std::string tls_server_name;
  /// If empty, the certificates that this machine trusts.
  PemSource authority;
  PemSource client_certificate;
  PemSource client_key;
  /// The token, in order of preference: from the file, the text, or the program.
  std::string token_file;
  std::string token;
  std::optional<ExecPlugin> exec;
  std::string ns = "default";

  /// "https://host:port/prefix", for messages and plugins.
  std::string Url() const;
};

/// A ClusterAccess with only the parts of "https://host[:port][/prefix]". kInvalidArgument if the
/// text is no such URL. Plain HTTP is refused, because others could read the token.
absl::StatusOr<ClusterAccess> ParseServerUrl(std::string_view url);

/// The PEM text of `source`; empty if there is none. Errors name the file.
absl::StatusOr<std::string> ReadPem(const PemSource& source);

}  // namespace muster::kubernetes
