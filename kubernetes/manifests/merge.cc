#include "kubernetes/manifests/merge.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace muster::kubernetes {
namespace {

using nlohmann::json;

enum class ListRule { kReplace, kAppend, kMergeEntries, kReplaceEntries };

struct MergeRule {
  ListRule rule = ListRule::kReplace;
  std::string key;  // for the last two rules
};

/// The rule depends only on the name of the list, because a name means the same everywhere in a pod
/// template.
MergeRule RuleOf(const std::string& list) {
  static const std::map<std::string_view, MergeRule> rules = {
      {"containers", {ListRule::kMergeEntries, "name"}},
      {"initContainers", {ListRule::kMergeEntries, "name"}},
      {"ports", {ListRule::kMergeEntries, "containerPort"}},
      {"topologySpreadConstraints", {ListRule::kMergeEntries, "topologyKey"}},
      {"volumes", {ListRule::kReplaceEntries, "name"}},
      {"env", {ListRule::kReplaceEntries, "name"}},
      {"imagePullSecrets", {ListRule::kReplaceEntries, "name"}},
      {"schedulingGates", {ListRule::kReplaceEntries, "name"}},
      {"resourceClaims", {ListRule::kReplaceEntries, "name"}},
      {"volumeMounts", {ListRule::kReplaceEntries, "mountPath"}},
      {"volumeDevices", {ListRule::kReplaceEntries, "devicePath"}},
      {"hostAliases", {ListRule::kReplaceEntries, "ip"}},
      {"tolerations", {ListRule::kAppend, ""}},
      {"envFrom", {ListRule::kAppend, ""}},
      {"readinessGates", {ListRule::kAppend, ""}},
      {"supplementalGroups", {ListRule::kAppend, ""}},
  };
  const auto found = rules.find(list);
  return found == rules.end() ? MergeRule{} : found->second;
}

bool SameEntry(const json& a, const json& b, const std::string& key) {
  return a.is_object() && b.is_object() && a.contains(key) && b.contains(key) &&
         a.at(key) == b.at(key);
}

void Merge(const json& fragment, json* base);

void MergeList(const MergeRule& rule, const json& fragment, json* base) {
  if (rule.rule == ListRule::kReplace) {
    *base = fragment;
    return;
  }
  if (!base->is_array()) *base = json::array();
  for (const json& entry : fragment) {
    const auto same = rule.rule == ListRule::kAppend
                          ? base->end()
                          : std::ranges::find_if(*base, [&](const json& other) {
                              return SameEntry(entry, other, rule.key);
                            });
    if (same == base->end()) {
      base->push_back(entry);
    } else if (rule.rule == ListRule::kReplaceEntries) {
      *same = entry;
    } else {
      Merge(entry, &*same);
    }
  }
}

void Merge(const json& fragment, json* base) {
  if (!base->is_object()) *base = json::object();
  for (const auto& [name, value] : fragment.items()) {
    if (value.is_null()) {
      base->erase(name);
    } else if (value.is_object()) {
      Merge(value, &(*base)[name]);
    } else if (value.is_array()) {
      MergeList(RuleOf(name), value, &(*base)[name]);
    } else {
      (*base)[name] = value;
    }
  }
}

}  // namespace

void MergePodTemplate(const json& fragment, json* base) {
  Merge(fragment, base);
}

}  // namespace muster::kubernetes
