#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::kubernetes {

/// Certificates or a key: a file, which is read whenever it is needed because others renew it, or
/// the PEM text itself. Both empty: none.
struct PemSource {
  std::string path;
  std::string text;
  bool empty() const { return path.empty() && text.empty(); }
  friend bool operator==(const PemSource&, const PemSource&) = default;
};

/// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  /// With a '/': a path; otherwise looked for in PATH.
  std::string command;
  std::vector<std::string> arguments;
  /// Added to our own environment.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string api_version;
  bool wants_cluster = false;
  /// What the user sees if the command is missing; may be empty.
  std::string install_hint;
  friend bool operator==(const ExecPlugin&, const ExecPlugin&) = default;
};

/// How to reach an API server, and as whom. A value without behaviour; it may hold secrets, so it
/// is never printed.
struct ClusterAccess {
  /// A name, an IPv4 address, or an IPv6 address without brackets.
  std::string host;
  uint16_t port = 443;
  /// Before every path ("/k8s/clusters/c1"); empty, or begins with '/' and does not end with it.
  std::string path_prefix;
  /// The name that the server's certificate must have; empty: `host`.
  std::string tls_server_name;
  /// Empty: the certificates that this machine trusts.
  PemSource authority;
  PemSource client_certificate;
  PemSource client_key;
  /// In order of preference: the file, the text, the program.
  std::string token_file;
  std::string token;
  std::optional<ExecPlugin> exec;
  std::string ns = "default";

  /// "https://host:port/prefix", for messages and plugins.
  std::string Url() const;
};

/// The parts of "https://host[:port][/prefix]" in a ClusterAccess that is empty otherwise.
/// kInvalidArgument: it is no such URL. Plain HTTP is refused: a token would be readable.
absl::StatusOr<ClusterAccess> ParseServerUrl(std::string_view url);

/// The PEM text of `source`; empty if there is none. Errors name the file.
absl::StatusOr<std::string> ReadPem(const PemSource& source);

}  // namespace muster::kubernetes
