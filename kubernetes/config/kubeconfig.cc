#include "kubernetes/config/kubeconfig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "kubernetes/model/resource.h"

namespace muster::kubernetes {
namespace {

constexpr uint64_t kKubeconfigBytesMax = 4 << 20;

/// Thrown to leave the parser. ParseKubeconfig catches it together with yaml-cpp's own exceptions.
struct Refusal {
  absl::Status status;
};

[[noreturn]] void Refuse(std::string_view what) {
  throw Refusal{absl::InvalidArgumentError(fmt::format("{}", what))};
}

/// A text field. Empty if it is missing.
std::string TextField(const YAML::Node& node, const char* name) {
  if (!node.IsMap()) return "";
  const YAML::Node value = node[name];
  if (!value || value.IsNull()) return "";
  if (!value.IsScalar()) Refuse(fmt::format("\"{}\" must be a text", name));
  return value.Scalar();
}

bool IsSet(const YAML::Node& node, const char* name) {
  const std::string value = TextField(node, name);
  return !value.empty() && value != "false";
}

/// The map named `part` of the entry `name` in a list such as `clusters`.
YAML::Node Entry(const YAML::Node& root, const char* list, const char* part,
                 std::string_view name) {
  const YAML::Node entries = root[list];
  std::vector<std::string> others;
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (entry.IsMap() && TextField(entry, "name") == name) {
        const YAML::Node value = entry[part];
        return value && value.IsMap() ? value : YAML::Node(YAML::NodeType::Map);
      }
      others.push_back(Excerpt(TextField(entry, "name"), 80));
    }
  }
  throw Refusal{absl::NotFoundError(
      fmt::format("there is no \"{}\" in {}; there are: {}", Excerpt(name, 80), list,
                  others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))))};
}

std::string Absolute(const std::string& path, const std::string& folder) {
  if (path.empty() || path.front() == '/') return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

/// The field `name` (a path), or `name`-data (base64). If both exist, the latter counts, as for
/// kubectl.
PemSource PemField(const YAML::Node& node, const std::string& name, const std::string& folder) {
  const std::string data_name = name + "-data";
  const std::string data = TextField(node, data_name.c_str());
  std::string text;
  if (!absl::Base64Unescape(data, &text)) Refuse(fmt::format("\"{}\" is no base64", data_name));
  if (!data.empty()) return {.path = "", .text = std::move(text)};
  return {.path = Absolute(TextField(node, name.c_str()), folder), .text = ""};
}

ClusterAccess ReadCluster(const YAML::Node& cluster, const std::string& folder) {
  if (IsSet(cluster, "insecure-skip-tls-verify")) {
    Refuse(
        "insecure-skip-tls-verify is refused: anyone on the way could read the token. Give the "
        "cluster's certificate-authority instead");
  }
  if (IsSet(cluster, "proxy-url")) Refuse("proxy-url is not supported");
  absl::StatusOr<ClusterAccess> access = ParseServerUrl(TextField(cluster, "server"));
  if (!access.ok()) throw Refusal{access.status()};
  access->tls_server_name = TextField(cluster, "tls-server-name");
  access->authority = PemField(cluster, "certificate-authority", folder);
  return *std::move(access);
}

ExecPlugin ReadExec(const YAML::Node& exec, const std::string& folder) {
  ExecPlugin plugin{.command = TextField(exec, "command"),
                    .api_version = TextField(exec, "apiVersion"),
                    .wants_cluster = IsSet(exec, "provideClusterInfo"),
                    .install_hint = TextField(exec, "installHint")};
  if (plugin.command.empty()) Refuse("exec has no command");
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = Absolute(plugin.command, folder);
  }
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    Refuse(fmt::format("exec has the apiVersion \"{}\", which is not known",
                       Excerpt(plugin.api_version, 80)));
  }
  if (TextField(exec, "interactiveMode") == "Always") {
    Refuse("exec wants a terminal (interactiveMode: Always), and there is none");
  }
  if (const YAML::Node arguments = exec["args"]; arguments && arguments.IsSequence()) {
    for (const YAML::Node& one : arguments) plugin.arguments.push_back(one.as<std::string>());
  }
  if (const YAML::Node environment = exec["env"]; environment && environment.IsSequence()) {
    for (const YAML::Node& one : environment) {
      plugin.environment.emplace_back(TextField(one, "name"), TextField(one, "value"));
    }
  }
  return plugin;
}

void ReadUser(const YAML::Node& user, const std::string& folder, ClusterAccess* access) {
  for (const char* field : {"username", "password", "auth-provider", "as", "as-uid"}) {
    const YAML::Node value = user[field];
    if (value && !value.IsNull()) Refuse(fmt::format("\"{}\" of a user is not supported", field));
  }
  access->client_certificate = PemField(user, "client-certificate", folder);
  access->client_key = PemField(user, "client-key", folder);
  if (access->client_certificate.empty() != access->client_key.empty()) {
    Refuse("a user has a client-certificate without a client-key, or the other way round");
  }
  access->token_file = Absolute(TextField(user, "tokenFile"), folder);
  access->token = TextField(user, "token");
  const YAML::Node exec = user["exec"];
  if (exec && exec.IsMap()) access->exec = ReadExec(exec, folder);
}

ClusterAccess ReadDocument(const YAML::Node& root, const std::string& folder,
                           std::string_view context_name) {
  if (!root.IsMap()) Refuse("it is no kubeconfig");
  const std::string name =
      context_name.empty() ? TextField(root, "current-context") : std::string(context_name);
  if (name.empty()) Refuse("it has no current-context; name a context");
  const YAML::Node context = Entry(root, "contexts", "context", name);
  ClusterAccess access =
      ReadCluster(Entry(root, "clusters", "cluster", TextField(context, "cluster")), folder);
  const std::string user = TextField(context, "user");
  if (!user.empty()) ReadUser(Entry(root, "users", "user", user), folder, &access);
  const std::string ns = TextField(context, "namespace");
  if (!ns.empty()) access.ns = ns;
  if (absl::Status status = CheckLabel(access.ns); !status.ok()) throw Refusal{status};
  return access;
}

}  // namespace

absl::StatusOr<ClusterAccess> ParseKubeconfig(std::string_view text, const std::string& folder,
                                              std::string_view context) {
  try {
    return ReadDocument(YAML::Load(std::string(text)), folder, context);
  } catch (const Refusal& refusal) {
    return refusal.status;
  } catch (const YAML::Exception& exception) {
    // yaml-cpp's text may quote the file, which contains secrets. So only the position is shown.
    return absl::InvalidArgumentError(fmt::format("it is no valid YAML at line {}, column {}",
                                                  exception.mark.line + 1,
                                                  exception.mark.column + 1));
  }
}

absl::StatusOr<ClusterAccess> LoadKubeconfig(const std::string& path, std::string_view context) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kKubeconfigBytesMax));
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  absl::StatusOr<ClusterAccess> access = ParseKubeconfig(text, folder, context);
  if (!access.ok()) return Annotate(access.status(), path);
  return access;
}

absl::StatusOr<ClusterAccess> InClusterAccess(std::string_view host, std::string_view port,
                                              const std::string& folder) {
  if (host.empty() || port.empty()) {
    return absl::FailedPreconditionError(
        "this process runs in no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
        "set. Give a kubeconfig");
  }
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  MUSTER_ASSIGN_OR_RETURN(ClusterAccess access,
                          ParseServerUrl(fmt::format("https://{}{}{}:{}", is_ipv6 ? "[" : "", host,
                                                     is_ipv6 ? "]" : "", port)));
  access.token_file = folder + "/token";
  access.authority.path = folder + "/ca.crt";
  if (!std::filesystem::exists(access.token_file)) {
    return absl::FailedPreconditionError(
        fmt::format("the pod has no token in {}: does it say automountServiceAccountToken: false?",
                    access.token_file));
  }
  MUSTER_ASSIGN_OR_RETURN(access.ns, ReadFile(folder + "/namespace", kObjectNameBytesMax));
  while (access.ns.ends_with('\n')) access.ns.pop_back();
  MUSTER_RETURN_IF_ERROR(CheckLabel(access.ns));
  return access;
}

}  // namespace muster::kubernetes
