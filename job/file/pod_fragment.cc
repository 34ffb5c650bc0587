#include "job/file/pod_fragment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"

namespace muster::job_file {
namespace {

using nlohmann::json;

/// A value in the fragment, and its path there ("spec.containers[0].env").
struct Part {
  const YamlNode* node = nullptr;
  std::string path;
};

absl::Status Refusal(const YamlNode& node, const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("{} (line {}): {}", path.empty() ? "here" : path, node.position.line, what));
}

std::string Below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

const YamlNode* ValueOf(const YamlNode& node, std::string_view name) {
  for (const YamlEntry& entry : node.entries) {
    if (entry.key.text == name) return &entry.value;
  }
  return nullptr;
}

/// Parses numbers as kubectl does: with a sign, hexadecimal, or octal with a leading 0.
std::optional<json> NumberOf(std::string_view text) {
  const bool minus = text.starts_with('-');
  std::string_view digits = text;
  if (minus || text.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.')) return {};
  int base = 10;
  std::string_view whole = digits;
  if (whole.starts_with("0x")) {
    base = 16;
    whole.remove_prefix(2);
  } else if (whole.starts_with("0o")) {
    base = 8;
    whole.remove_prefix(2);
  } else if (whole.size() > 1 && whole[0] == '0') {
    base = 8;
  }
  int64_t number = 0;
  const char* const end = whole.data() + whole.size();
  auto [last, error] = std::from_chars(whole.data(), end, number, base);
  if (error == std::errc() && last == end) return json(minus ? -number : number);
  double decimal = 0;
  const char* const decimal_end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), decimal_end, decimal);
  if (read.ec == std::errc() && read.ptr == decimal_end) return json(minus ? -decimal : decimal);
  return {};
}

json ScalarOf(const YamlNode& node) {
  if (node.quoted) return node.text;
  for (const std::string_view word : {"true", "True", "TRUE"}) {
    if (node.text == word) return true;
  }
  for (const std::string_view word : {"false", "False", "FALSE"}) {
    if (node.text == word) return false;
  }
  for (const std::string_view word : {"", "~", "null", "Null", "NULL"}) {
    if (node.text == word) return nullptr;
  }
  std::optional<json> number = NumberOf(node.text);
  return number.has_value() ? *std::move(number) : json(node.text);
}

absl::StatusOr<json> JsonOf(const YamlNode& node, const std::string& path) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kScalar:
      return ScalarOf(node);
    case YamlNode::Kind::kList: {
      json list = json::array();
      for (const YamlNode& item : node.items) {
        MUSTER_ASSIGN_OR_RETURN(json value, JsonOf(item, fmt::format("{}[{}]", path, list.size())));
        list.push_back(std::move(value));
      }
      return list;
    }
    case YamlNode::Kind::kMap:
      break;
  }
  json map = json::object();
  for (const auto& [key, value] : node.entries) {
    const std::string below = Below(path, key.text);
    if (key.text.starts_with('$')) {
      return Refusal(key, below,
                     "directives of patches are not supported; null removes a field, and lists are "
                     "merged by name");
    }
    if (map.contains(key.text)) return Refusal(key, below, "is given twice");
    MUSTER_ASSIGN_OR_RETURN(map[key.text], JsonOf(value, below));
  }
  return map;
}

bool IsNull(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kNull ||
         (node.kind == YamlNode::Kind::kScalar && ScalarOf(node).is_null());
}

absl::Status CheckTexts(const Part& texts) {
  if (texts.node->kind != YamlNode::Kind::kMap) {
    return Refusal(*texts.node, texts.path,
                   fmt::format("expected names with text, got {}", Describe(*texts.node)));
  }
  for (const auto& [key, value] : texts.node->entries) {
    if (IsNull(value)) continue;
    if (value.kind == YamlNode::Kind::kScalar && ScalarOf(value).is_string()) continue;
    return Refusal(value, Below(texts.path, key.text),
                   fmt::format("must be text, not {}{}", Describe(value),
                               value.kind == YamlNode::Kind::kScalar ? "; put it in quotes" : ""));
  }
  return absl::OkStatus();
}

absl::Status CheckMetadata(const Part& metadata) {
  for (const auto& [key, value] : metadata.node->entries) {
    const std::string path = Below(metadata.path, key.text);
    if (key.text != "labels" && key.text != "annotations") {
      return Refusal(key, path, "only labels and annotations may be given; Muster sets the rest");
    }
    if (key.text == "annotations" && IsNull(value)) continue;
    MUSTER_RETURN_IF_ERROR(CheckTexts({&value, path}));
    if (key.text == "annotations") continue;
    for (const auto& [label, text] : value.entries) {
      for (const std::string_view prefix : {"muster/", "batch.kubernetes.io/"}) {
        if (!label.text.starts_with(prefix)) continue;
        return Refusal(
            label, Below(path, label.text),
            fmt::format("labels that begin with {} are set by Muster and Kubernetes", prefix));
      }
    }
  }
  return absl::OkStatus();
}

/// The entries of a list of groups. Each has a name, or another key.
absl::StatusOr<std::vector<Part>> EntriesOf(const Part& list, const std::string& key) {
  std::vector<Part> entries;
  if (list.node->kind != YamlNode::Kind::kList) {
    return Refusal(*list.node, list.path,
                   fmt::format("expected a list, got {}", Describe(*list.node)));
  }
  for (const YamlNode& item : list.node->items) {
    const std::string path = fmt::format("{}[{}]", list.path, entries.size());
    const YamlNode* const name = ValueOf(item, key);
    if (name == nullptr || name->kind != YamlNode::Kind::kScalar || name->text.empty()) {
      return Refusal(item, path, fmt::format("needs a {}", key));
    }
    entries.push_back({&item, path});
  }
  return entries;
}

absl::Status CheckEnvironment(const Part& container, bool of_muster) {
  const YamlNode* const env = ValueOf(*container.node, "env");
  if (env == nullptr || IsNull(*env)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Part> variables,
                          EntriesOf({env, container.path + ".env"}, "name"));
  for (const Part& variable : variables) {
    const std::string& name = ValueOf(*variable.node, "name")->text;
    if (of_muster && name.starts_with("MUSTER_") && !name.starts_with("MUSTER_FAILPOINTS")) {
      return Refusal(*variable.node, variable.path, fmt::format("{} is set by Muster", name));
    }
    const YamlNode* const value = ValueOf(*variable.node, "value");
    if (value == nullptr || IsNull(*value)) continue;
    if (value->kind == YamlNode::Kind::kScalar && ScalarOf(*value).is_string()) continue;
    return Refusal(*value, variable.path + ".value",
                   fmt::format("must be text, not {}; put it in quotes", Describe(*value)));
  }
  return absl::OkStatus();
}

/// Rejects amounts that the scaler decides, because PodHost sets them.
absl::Status CheckAmounts(const Part& container, FragmentPods pods) {
  const YamlNode* const resources = ValueOf(*container.node, "resources");
  if (resources == nullptr || pods == FragmentPods::kMaster) return absl::OkStatus();
  for (const auto& [kind, amounts] : resources->entries) {
    for (const std::string_view name : {"cpu", "memory"}) {
      const YamlNode* const amount = ValueOf(amounts, name);
      if (amount == nullptr) continue;
      return Refusal(*amount, fmt::format("{}.resources.{}.{}", container.path, kind.text, name),
                     "Muster sets CPU and memory of servers and workers; give "
                     "spec.replicaSpecs.ROLE.resources");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMuster(const Part& container, FragmentPods pods) {
  constexpr std::array kOurs = {
      "command",      "args",         "terminationMessagePath", "terminationMessagePolicy",
      "resizePolicy", "restartPolicy"};
  constexpr std::array kNeeded = {"image", "env", "volumeMounts"};
  for (const auto& [key, value] : container.node->entries) {
    if (IsNull(value) && std::ranges::find(kNeeded, key.text) != kNeeded.end()) {
      return Refusal(key, Below(container.path, key.text), "cannot be removed; Muster needs it");
    }
    if (std::ranges::find(kOurs, key.text) == kOurs.end()) continue;
    return Refusal(key, Below(container.path, key.text),
                   key.text == "command" || key.text == "args"
                       ? "Muster sets the command of its container; a trainer's is "
                         "spec.replicaSpecs.worker.command"
                       : "is set by Muster");
  }
  if (const YamlNode* mounts = ValueOf(*container.node, "volumeMounts")) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<Part> entries,
                            EntriesOf({mounts, container.path + ".volumeMounts"}, "mountPath"));
    for (const Part& mount : entries) {
      if (!ValueOf(*mount.node, "mountPath")->text.starts_with("/etc/muster")) continue;
      return Refusal(*mount.node, mount.path, "Muster's own files are mounted below /etc/muster");
    }
  }
  return CheckAmounts(container, pods);
}

absl::Status CheckContainers(const Part& list, FragmentPods pods) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Part> containers, EntriesOf(list, "name"));
  const bool init = list.path.ends_with("initContainers");
  for (const Part& container : containers) {
    const bool of_muster = ValueOf(*container.node, "name")->text == "muster";
    if (of_muster && init) {
      return Refusal(*container.node, container.path, "the name muster is taken");
    }
    if (of_muster) MUSTER_RETURN_IF_ERROR(CheckMuster(container, pods));
    MUSTER_RETURN_IF_ERROR(CheckEnvironment(container, of_muster));
  }
  return absl::OkStatus();
}

absl::Status CheckVolumes(const Part& list) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Part> volumes, EntriesOf(list, "name"));
  for (const Part& volume : volumes) {
    if (!ValueOf(*volume.node, "name")->text.starts_with("muster-")) continue;
    return Refusal(*volume.node, volume.path, "names that begin with muster- are Muster's own");
  }
  return absl::OkStatus();
}

bool HasMaster(FragmentPods pods) {
  return pods == FragmentPods::kAll || pods == FragmentPods::kMaster;
}

/// Without a name of its own, the master would use the namespace's default account, and every pod
/// would have its rights.
absl::Status CheckAccount(const Part& account) {
  const bool is_text = account.node->kind == YamlNode::Kind::kScalar &&
                       ScalarOf(*account.node).is_string() && !account.node->text.empty();
  if (is_text) return absl::OkStatus();
  return Refusal(*account.node, account.path,
                 "must be the name of a ServiceAccount; leave it out, and Muster makes one");
}

absl::Status CheckSpec(const Part& spec, FragmentPods pods) {
  for (const auto& [key, value] : spec.node->entries) {
    const Part field{&value, Below(spec.path, key.text)};
    if (key.text == "restartPolicy") {
      return Refusal(key, field.path, "is set by Muster, which restarts its processes itself");
    }
    if (key.text == "serviceAccountName" && HasMaster(pods)) {
      MUSTER_RETURN_IF_ERROR(CheckAccount(field));
    }
    if (IsNull(value) && key.text != "containers" && key.text != "volumes") continue;
    if (key.text == "containers" || key.text == "initContainers") {
      MUSTER_RETURN_IF_ERROR(CheckContainers(field, pods));
    } else if (key.text == "volumes") {
      MUSTER_RETURN_IF_ERROR(CheckVolumes(field));
    } else if (key.text == "nodeSelector") {
      MUSTER_RETURN_IF_ERROR(CheckTexts(field));
    }
  }
  return absl::OkStatus();
}

}  // namespace

FragmentPods PodsOf(std::string_view path) {
  if (path.ends_with(".master")) return FragmentPods::kMaster;
  if (path.ends_with(".ps")) return FragmentPods::kServers;
  if (path.ends_with(".worker")) return FragmentPods::kWorkers;
  return FragmentPods::kAll;
}

absl::StatusOr<std::string> PodFragment(const YamlNode& node, FragmentPods pods) {
  if (IsNull(node)) return "";
  MUSTER_ASSIGN_OR_RETURN(json fragment, JsonOf(node, ""));
  if (!fragment.is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("expected a fragment of a pod template, got {}", Describe(node)));
  }
  for (const auto& [key, value] : node.entries) {
    if (key.text != "metadata" && key.text != "spec") {
      return Refusal(key, key.text,
                     "a pod template has metadata and spec; is this a field of spec?");
    }
    if (IsNull(value)) {
      fragment.erase(key.text);  // an empty group, so Muster's own stays
      continue;
    }
    if (value.kind != YamlNode::Kind::kMap) {
      return Refusal(value, key.text,
                     fmt::format("expected a group of fields, got {}", Describe(value)));
    }
    MUSTER_RETURN_IF_ERROR(key.text == "spec" ? CheckSpec({&value, key.text}, pods)
                                              : CheckMetadata({&value, key.text}));
  }
  return fragment.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::job_file
