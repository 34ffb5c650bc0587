#include "job/file/derived_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "job/file/yaml_tree.h"

namespace muster {
namespace {

using job_file::YamlEntry;
using job_file::YamlNode;

/// The value of a key; null if the node is no map, or has no such key.
YamlNode* Find(YamlNode* node, const std::string& key) {
  if (node == nullptr) return nullptr;
  for (YamlEntry& entry : node->entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

YamlNode Text(std::string text) {
  return {.kind = YamlNode::Kind::kScalar, .text = std::move(text), .quoted = true};
}

/// In double quotes.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      case '"':
      case '\\':
        quoted += '\\';
        [[fallthrough]];
      default:
        quoted += letter;
    }
  }
  return quoted + '"';
}

YamlNode* FindOrAdd(YamlNode* map, const std::string& key) {
  if (YamlNode* const known = Find(map, key)) return known;
  map->kind = YamlNode::Kind::kMap;
  YamlNode name = Text(key);
  name.quoted = false;
  map->entries.push_back({std::move(name), {}});
  return &map->entries.back().value;
}

void Remove(YamlNode* map, const std::string& key) {
  if (map == nullptr) return;
  std::erase_if(map->entries, [&key](const YamlEntry& entry) { return entry.key.text == key; });
}

/// Appends the node as block YAML, with the line end: behind a key, or behind the dash of a list.
void Append(const YamlNode& node, size_t indent, std::string* text) {
  const std::string margin(indent, ' ');
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      *text += "\n";
      return;
    case YamlNode::Kind::kScalar:
      // What stood without quotes is plain in a block, too.
      *text += " " + (node.quoted ? Quoted(node.text) : node.text) + "\n";
      return;
    case YamlNode::Kind::kList:
      *text += node.items.empty() ? " []\n" : "\n";
      for (const YamlNode& item : node.items) {
        *text += margin + "-";
        Append(item, indent + 2, text);
      }
      return;
    case YamlNode::Kind::kMap:
      *text += node.entries.empty() ? " {}\n" : "\n";
      for (const auto& [key, value] : node.entries) {
        *text += margin + key.text + ":";
        Append(value, indent + 2, text);
      }
      return;
  }
}

}  // namespace

absl::StatusOr<std::string> DeriveJob(const std::string& text, const std::string& name,
                                      const DerivedJob& derived) {
  MUSTER_ASSIGN_OR_RETURN(YamlNode job, job_file::ParseYaml(text, name));
  const std::string mode = ToString(derived.mode);
  YamlNode* const spec = Find(&job, "spec");
  YamlNode* const datasets = Find(spec, "datasets");
  if (datasets != nullptr) {
    std::erase_if(datasets->items, [&mode](YamlNode& dataset) {
      const YamlNode* const its = Find(&dataset, "mode");
      return its == nullptr || its->text != mode;
    });
  }
  if (datasets == nullptr || datasets->items.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "{0}: it has no dataset of mode {1}: add one to spec.datasets, with `mode: {1}`", name,
        mode));
  }
  YamlNode* const state = FindOrAdd(spec, "stateDirectory");
  const std::string training = state->text.empty() ? "state" : state->text;
  *state = Text(derived.state_directory.empty() ? training + "-" + mode : derived.state_directory);
  // Its own snapshots would be mixed with those of the training.
  Remove(Find(spec, "snapshots"), "directory");
  YamlNode* const options = FindOrAdd(spec, "training");
  *FindOrAdd(options, "warmStart") = Text(derived.weights);
  Remove(options, "keep");
  Remove(options, "stopEarly");
  std::string result;
  Append(job, 0, &result);
  return result.substr(1);  // the line end behind no key
}

}  // namespace muster
