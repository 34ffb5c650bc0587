#include "job/file/job_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "job/file/field_value.h"
#include "job/file/job_fields.h"
#include "job/file/job_rules.h"
#include "job/file/paths.h"
#include "job/file/source_rules.h"
#include "job/file/yaml_tree.h"

namespace muster {
namespace job_file {
namespace {

/// The present name of a field. Names of version 0.1 are still accepted.
std::string_view NameToday(std::string_view name) {
  return name == "relaunchesMax" ? "restartsMax" : name;
}

constexpr size_t kErrorsMax = 20;

/// A name that is allowed at one level of the file.
struct Child {
  enum class Kind : uint8_t { kField, kGroup, kListOfGroups };
  Kind kind = Kind::kGroup;
  const Field* field = nullptr;
};

/// The allowed names directly below `path`. "" is the file itself, and "spec.datasets[]" is one
/// dataset.
std::map<std::string, Child> ChildrenOf(const std::string& path) {
  std::map<std::string, Child> children;
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const Field& field : JobFields()) {
    if (!field.path.starts_with(prefix)) continue;
    const std::string rest = field.path.substr(prefix.size());
    const size_t dot = rest.find('.');
    std::string name = rest.substr(0, dot);
    Child child;
    if (dot == std::string::npos) {
      child = {.kind = Child::Kind::kField, .field = &field};
    } else if (name.ends_with("[]")) {
      name.resize(name.size() - 2);
      child.kind = Child::Kind::kListOfGroups;
    }
    children.emplace(std::move(name), child);
  }
  return children;
}

/// If a field of this name at another level was probably meant, its full path. Otherwise "".
std::string PlaceElsewhere(const std::string& name) {
  for (const Field& field : JobFields()) {
    if (field.path.ends_with("." + name)) return field.path;
  }
  return "";
}

/// Reads one tree into one JobSpec, and collects errors. Not thread-safe; used once.
class JobReader {
 public:
  JobReader(std::string file_name, std::string base_directory)
      : file_name_(std::move(file_name)), base_directory_(std::move(base_directory)) {}

  absl::StatusOr<JobSpec> Read(const YamlNode& root) {
    scope_.job = &job_;
    scope_.unused = &unused_;
    ReadGroup(root, {});
    CheckRules();
    if (!errors_.empty()) return AllErrors();
    FillSources();
    FillShardsOfMixed();
    FillPaths();
    return std::move(job_);
  }

 private:
  /// The present place of the reader.
  struct Place {
    std::string path;   // "spec.datasets[].name"
    std::string shown;  // "spec.datasets[0].name"
  };
  struct Error {
    Position position;
    std::string text;
  };

  static Place Below(const Place& place, const std::string& name) {
    const std::string dot = place.path.empty() ? "" : ".";
    return {place.path + dot + name, place.shown + dot + name};
  }

  void AddError(const YamlNode& node, const std::string& shown, std::string_view what) {
    bad_.insert(shown);
    errors_.push_back(
        {node.position, shown.empty() ? std::string(what) : fmt::format("{}: {}", shown, what)});
  }

  void AddBrokenRule(const BrokenRule& rule) {
    for (const std::string& path : rule.paths) {
      if (bad_.contains(path)) return;  // the value is not the one in the file
    }
    for (const std::string& path : rule.paths) {
      const auto at = given_.find(path);
      if (at == given_.end()) continue;
      errors_.push_back({at->second, fmt::format("{}: {}", rule.paths.front(), rule.what)});
      return;
    }
    errors_.push_back({{}, fmt::format("{}: {}", rule.paths.front(), rule.what)});
  }

  absl::Status AllErrors() {
    std::stable_sort(errors_.begin(), errors_.end(), [](const Error& a, const Error& b) {
      return std::pair(a.position.line, a.position.column) <
             std::pair(b.position.line, b.position.column);
    });
    std::string text;
    for (size_t i = 0; i < std::min(errors_.size(), kErrorsMax); ++i) {
      if (i != 0) text += '\n';
      text += ErrorLine(file_name_, errors_[i].position, errors_[i].text);
    }
    if (errors_.size() > kErrorsMax) {
      text += fmt::format("\n{}: {} more errors", file_name_, errors_.size() - kErrorsMax);
    }
    return absl::InvalidArgumentError(text);
  }

  void ReadGroup(const YamlNode& node, const Place& place) {
    if (node.kind != YamlNode::Kind::kMap && node.kind != YamlNode::Kind::kNull) {
      AddError(node, place.shown,
               fmt::format("expected a group of fields, got {}", Describe(node)));
      return;
    }
    const auto children = ChildrenOf(place.path);
    std::map<std::string, Position> seen;
    for (const auto& [key, value] : node.entries) {
      const std::string name(NameToday(key.text));
      const auto [first, fresh] = seen.emplace(name, key.position);
      if (!fresh) {
        AddError(key, Below(place, Excerpt(key.text, 60)).shown,
                 fmt::format("is given twice (first in line {})", first->second.line));
        continue;
      }
      const auto child = children.find(name);
      if (child == children.end()) {
        AddUnknown(key, place, children);
      } else {
        ReadChild(child->second, value, Below(place, name));
      }
    }
    YamlNode absent;
    absent.position = node.position;
    for (const auto& [name, child] : children) {
      if (seen.contains(name)) continue;
      const Place below = Below(place, name);
      if (child.kind == Child::Kind::kGroup) {
        ReadGroup(absent, below);
      } else if (child.kind == Child::Kind::kListOfGroups || child.field->required) {
        AddError(absent, below.shown, "is missing");
      }
    }
  }

  void AddUnknown(const YamlNode& key, const Place& place,
                  const std::map<std::string, Child>& children) {
    std::vector<std::string> names;
    for (const auto& [name, child] : children) names.push_back(name);
    const std::string nearest = Nearest(key.text, names);
    const std::string elsewhere = PlaceElsewhere(key.text);
    std::string hint;
    if (!elsewhere.empty()) {
      hint = fmt::format("did you mean {}?", elsewhere);
    } else if (!nearest.empty()) {
      hint = fmt::format("did you mean '{}'?", nearest);
    } else {
      hint = fmt::format("the fields here are {}", fmt::join(names, ", "));
    }
    AddError(key, place.shown, fmt::format("unknown field {}; {}", Describe(key), hint));
  }

  void ReadChild(const Child& child, const YamlNode& value, const Place& place) {
    given_[place.shown] = value.position;
    switch (child.kind) {
      case Child::Kind::kField:
        return ReadField(*child.field, value, place.shown);
      case Child::Kind::kGroup:
        return ReadGroup(value, place);
      case Child::Kind::kListOfGroups:
        return ReadDatasets(value, place);
    }
  }

  /// There is no other list of groups.
  void ReadDatasets(const YamlNode& node, const Place& place) {
    if (node.kind != YamlNode::Kind::kList || node.items.empty()) {
      AddError(node, place.shown,
               fmt::format("expected a list of datasets, got {}",
                           node.kind == YamlNode::Kind::kList ? "an empty one" : Describe(node)));
      return;
    }
    if (node.items.size() > kDatasetsMax) {
      AddError(
          node, place.shown,
          fmt::format("has {} datasets; at most {} are allowed", node.items.size(), kDatasetsMax));
      return;
    }
    drafts_.resize(node.items.size());  // fields point into it, so it must not grow later
    for (size_t i = 0; i < node.items.size(); ++i) {
      scope_.dataset = &drafts_[i];
      const Place below{place.path + "[]", fmt::format("{}[{}]", place.shown, i)};
      given_[below.shown] = node.items[i].position;
      ReadGroup(node.items[i], below);
      const auto epochs = given_.find(below.shown + ".epochs");
      const DatasetMode mode = scope_.dataset->spec.mode;
      if (epochs != given_.end() && mode != DatasetMode::kTrain) {
        errors_.push_back(
            {epochs->second,
             fmt::format("{}.epochs: is allowed in mode train only; {}", below.shown,
                         mode == DatasetMode::kEvaluate
                             ? "an evaluate dataset is read after every training epoch"
                             : "a predict dataset is read once")});
      }
    }
    scope_.dataset = nullptr;
  }

  void ReadField(const Field& field, const YamlNode& node, const std::string& shown) {
    const absl::Status status = StoreValue(field, node, scope_);
    if (!status.ok()) AddError(node, shown, Message(status));
  }

  void CheckRules() {
    std::vector<BrokenRule> broken;
    for (size_t i = 0; i < drafts_.size(); ++i) {
      CheckSource(drafts_[i], fmt::format("spec.datasets[{}]", i), &broken);
      job_.datasets.push_back(drafts_[i].spec);
    }
    FillServersOfGroup();
    for (BrokenRule& rule : CheckJobRules(job_)) broken.push_back(std::move(rule));
    CheckShardsOfGroup(&broken);
    for (const BrokenRule& rule : broken) AddBrokenRule(rule);
  }

  /// A group keeps its state itself, so it needs no server.
  void FillServersOfGroup() {
    const bool given = given_.contains("spec.replicaSpecs.ps.replicas") || job_.servers_joined > 0;
    if (HasGroup(job_) && !given) job_.ps.replicas = 0;
  }

  /// A shard is of one dataset, so a worker trains as many minibatches of one dataset in a row as a
  /// shard has. With fewer, the datasets are mixed better. Below so many records, a shard would be
  /// read in smaller pieces, and nothing more was gained below so many minibatches.
  void FillShardsOfMixed() {
    constexpr uint32_t kRecordsMin = 1'024, kMinibatchesMin = 4;
    const auto is_mixed = [](const DatasetSpec& dataset) {
      return dataset.mode == DatasetMode::kTrain &&
             std::holds_alternative<LinesSpec>(dataset.source);
    };
    if (HasGroup(job_) || std::ranges::count_if(job_.datasets, is_mixed) < 2) return;
    for (size_t i = 0; i < job_.datasets.size(); ++i) {
      DatasetSpec& dataset = job_.datasets[i];
      const bool given = given_.contains(fmt::format("spec.datasets[{}].minibatchesPerShard", i));
      if (given || !is_mixed(dataset)) continue;
      dataset.minibatches_per_shard = std::clamp(kRecordsMin / dataset.minibatch_size,
                                                 kMinibatchesMin, dataset.minibatches_per_shard);
    }
  }

  /// The shards of a group's job are its steps, so their size must not be set.
  void CheckShardsOfGroup(std::vector<BrokenRule>* broken) {
    if (!HasGroup(job_)) return;
    for (size_t i = 0; i < job_.datasets.size(); ++i) {
      DatasetSpec& dataset = job_.datasets[i];
      if (dataset.mode != DatasetMode::kTrain) continue;
      const std::string path = fmt::format("spec.datasets[{}].minibatchesPerShard", i);
      const uint32_t minibatches = *job_.group.global_batch / dataset.minibatch_size;
      if (given_.contains(path) && dataset.minibatches_per_shard != minibatches) {
        broken->push_back({{path, "spec.group.globalBatch"},
                           fmt::format("a step has {} minibatches, because spec.group.globalBatch "
                                       "is {}; remove this field",
                                       minibatches, *job_.group.global_batch)});
      }
      dataset.minibatches_per_shard = std::max(minibatches, 1u);
    }
  }

  void FillSources() {
    for (size_t i = 0; i < drafts_.size(); ++i) {
      job_.datasets[i].source = SourceOf(drafts_[i], base_directory_);
    }
  }

  void FillPaths() {
    job_.base_directory = base_directory_;
    if (job_.state_directory.empty()) job_.state_directory = "state";
    job_.state_directory = Absolute(base_directory_, job_.state_directory);
    for (std::string* path : {&job_.s3.credentials_file, &job_.s3.ca_file}) {
      if (!path->empty()) *path = Absolute(base_directory_, *path);
    }
    const std::string given = job_.snapshot_directory;
    job_.snapshot_directory = job_.snapshot_directory.empty()
                                  ? job_.state_directory + "/snapshots"
                                  : Absolute(base_directory_, job_.snapshot_directory);
    std::string& warm_start = job_.training.warm_start;
    if (!warm_start.empty()) warm_start = Absolute(base_directory_, warm_start);
    for (DatasetSpec& dataset : job_.datasets) {
      if (IsS3Place(dataset.output)) {
        dataset.output = PlaceWithOptions(dataset.output, job_.s3).value();  // as below
      } else if (!dataset.output.empty()) {
        dataset.output = Absolute(base_directory_, dataset.output);
      }
    }
    std::string& certificates = job_.security.certificates;
    if (!certificates.empty()) certificates = Absolute(base_directory_, certificates);
    if (IsS3Place(given)) {
      job_.snapshot_directory =
          PlaceWithOptions(given, job_.s3).value();  // the rules have checked it
    }
    std::string& program = job_.worker.command.front();
    if (program.find('/') != std::string::npos) program = Absolute(base_directory_, program);
  }

  const std::string file_name_;
  const std::string base_directory_;
  JobSpec job_;
  std::vector<DatasetDraft> drafts_;
  std::string unused_;
  FieldScope scope_;
  std::vector<Error> errors_;
  std::map<std::string, Position> given_;  // shown path -> where its value is
  std::set<std::string> bad_;              // shown paths with an error
};

}  // namespace
}  // namespace job_file

absl::StatusOr<JobSpec> ParseJobFile(std::string_view text, const std::string& file_name,
                                     const std::string& base_directory) {
  if (text.size() > kJobFileBytesMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{}:1:1: the file has {} bytes; a job file has at most {}. Is it the right file?",
        file_name, text.size(), kJobFileBytesMax));
  }
  MUSTER_ASSIGN_OR_RETURN(const job_file::YamlNode root, job_file::ParseYaml(text, file_name));
  return job_file::JobReader(file_name, base_directory).Read(root);
}

}  // namespace muster
