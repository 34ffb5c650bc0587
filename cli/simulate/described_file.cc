#include "cli/simulate/described_file.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/status.h"
#include "job/file/scalars.h"
#include "job/file/yaml_tree.h"

namespace muster::simulate {
namespace {

using job_file::YamlEntry;
using job_file::YamlNode;
using scaler::DescribedRole;
using scaler::DescribedSpec;
using scaler::Happening;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Takes a value. If the value is wrong, the error says why.
using Taker = std::function<absl::Status(const YamlNode& node)>;
using Takers = std::map<std::string, Taker>;

absl::StatusOr<microseconds> ParseShortTime(std::string_view text) {
  if (text.ends_with("us")) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t us,
                            job_file::ParseWhole(text.substr(0, text.size() - 2)));
    if (us > 1'000'000'000) return absl::InvalidArgumentError("must be at most 1000 s");
    return microseconds(static_cast<int64_t>(us));
  }
  MUSTER_ASSIGN_OR_RETURN(const milliseconds time, job_file::ParseDuration(text));
  if (time > seconds(1'000)) return absl::InvalidArgumentError("must be at most 1000 s");
  return std::chrono::duration_cast<microseconds>(time);
}

absl::StatusOr<seconds> ParseSeconds(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const milliseconds time, job_file::ParseDuration(text));
  if (time % seconds(1) != milliseconds(0)) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no whole number of seconds", text));
  }
  return std::chrono::duration_cast<seconds>(time);
}

absl::StatusOr<uint32_t> ParseCount(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t count, job_file::ParseWhole(text));
  constexpr uint64_t kMax = 1'000'000;
  if (count > kMax) return absl::InvalidArgumentError(fmt::format("must be at most {}", kMax));
  return static_cast<uint32_t>(count);
}

/// Parses how many times longer something takes.
absl::StatusOr<double> ParseFactor(std::string_view text) {
  absl::StatusOr<double> factor = job_file::ParseCpu(text);
  if (!factor.ok() || *factor < 0.01 || *factor > 1'000) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no factor from 0.01 to 1000, as in: slow: 5", text));
  }
  return factor;
}

absl::StatusOr<int> ParseExitCode(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t code, job_file::ParseWhole(text));
  if (code > 255) return absl::InvalidArgumentError("an exit code is at most 255");
  return static_cast<int>(code);
}

template <typename T>
Taker Into(T* to, absl::StatusOr<T> (*parse)(std::string_view)) {
  return [to, parse](const YamlNode& node) -> absl::Status {
    if (node.kind != YamlNode::Kind::kScalar) {
      return absl::InvalidArgumentError(fmt::format("is {}, must be a value", Describe(node)));
    }
    MUSTER_ASSIGN_OR_RETURN(*to, parse(node.text));
    return absl::OkStatus();
  };
}

/// For a flag that can only be set: "killed: true".
Taker OnlyTrue(std::function<void()> then) {
  return [then = std::move(then)](const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar || node.text != "true") {
      return absl::InvalidArgumentError(fmt::format("is {}, can only be true", Describe(node)));
    }
    then();
    return absl::OkStatus();
  };
}

class Reader {
 public:
  explicit Reader(std::string file_name) : file_name_(std::move(file_name)) {}

  absl::StatusOr<DescribedSpec> Read(const YamlNode& root) {
    DescribedSpec spec;
    const Takers takers = {
        {"duration", Into(&spec.duration, ParseSeconds)},
        {"records", Into(&spec.records, job_file::ParseWhole)},
        {"recordsPerMinibatch", Into(&spec.records_per_minibatch, ParseCount)},
        {"machine", Group("machine", ResourceTakers(&spec.machine))},
        {"budget", Group("budget", ResourceTakers(&spec.budget))},
        {"ps", Group("ps", ServerTakers(&spec.server))},
        {"worker", Group("worker", WorkerTakers(&spec))},
        {"happens", [&](const YamlNode& node) { return ReadHappenings(node, &spec); }}};
    MUSTER_RETURN_IF_ERROR(ReadGroup("", root, takers));
    MUSTER_RETURN_IF_ERROR(Check(spec));
    return spec;
  }

 private:
  absl::Status ErrorAt(const job_file::Position& position, std::string_view what) const {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: {}", file_name_, position.line, position.column, what));
  }

  absl::Status ReadGroup(const std::string& path, const YamlNode& node, const Takers& takers) {
    const std::string prefix = path.empty() ? "" : path + ".";
    if (node.kind != YamlNode::Kind::kMap) {
      return ErrorAt(node.position,
                     fmt::format("{}: is {}, must be a group of fields",
                                 path.empty() ? "the description" : path, Describe(node)));
    }
    std::set<std::string> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string& name = entry.key.text;
      const auto taker = takers.find(name);
      if (taker == takers.end()) return UnknownField(prefix, entry.key, takers);
      if (!seen.insert(name).second) {
        return ErrorAt(entry.key.position, fmt::format("{}{}: is there twice", prefix, name));
      }
      const absl::Status taken = taker->second(entry.value);
      if (taken.ok()) continue;
      // An inner level has already added the position.
      if (Message(taken).starts_with(file_name_ + ":")) return taken;
      return ErrorAt(entry.value.position, fmt::format("{}{}: {}", prefix, name, Message(taken)));
    }
    return absl::OkStatus();
  }

  absl::Status UnknownField(const std::string& prefix, const YamlNode& key, const Takers& takers) {
    std::vector<std::string> names;
    std::string all;
    for (const auto& [name, taker] : takers) {
      names.push_back(name);
      all += (all.empty() ? "" : ", ") + name;
    }
    const std::string near = Nearest(key.text, names);
    return ErrorAt(
        key.position,
        fmt::format("{}{}: is no field; {}", prefix, key.text.substr(0, 60),
                    near.empty() ? "there are " + all : fmt::format("did you mean {}?", near)));
  }

  Taker Group(std::string path, Takers takers) {
    return [this, path = std::move(path), takers = std::move(takers)](const YamlNode& node) {
      return ReadGroup(path, node, takers);
    };
  }

  static Takers ResourceTakers(Resources* resources) {
    return {{"cpu", Into(&resources->cpus, job_file::ParseCpu)},
            {"memory", Into(&resources->memory_bytes, job_file::ParseMemory)}};
  }

  Takers RoleTakers(const std::string& path, DescribedRole* role) {
    return {
        {"replicas", Into(&role->replicas, ParseCount)},
        {"limits", Group(path + ".limits", ResourceTakers(&role->limits))},
        {"max", Group(path + ".max", ResourceTakers(&role->max))},
        {"cpu", Into(&role->cpus, job_file::ParseCpu)},
        {"startTime", Into(&role->start, ParseSeconds)},
        {"memory",
         Group(path + ".memory",
               {{"start", Into(&role->memory_start, job_file::ParseMemory)},
                {"growthPerMinute", Into(&role->memory_growth_per_minute, job_file::ParseMemory)},
                {"most", Into(&role->memory_most, job_file::ParseMemory)}})}};
  }
  Takers ServerTakers(DescribedRole* role) {
    Takers takers = RoleTakers("ps", role);
    takers["requestTime"] = Into(&role->time, ParseShortTime);
    return takers;
  }
  Takers WorkerTakers(DescribedSpec* spec) {
    Takers takers = RoleTakers("worker", &spec->worker);
    takers["minibatchTime"] = Into(&spec->worker.time, ParseShortTime);
    takers["minReplicas"] = Into(&spec->workers_min, ParseCount);
    takers["maxReplicas"] = Into(&spec->workers_max, ParseCount);
    return takers;
  }

  absl::Status ReadHappenings(const YamlNode& node, DescribedSpec* spec) {
    if (node.kind != YamlNode::Kind::kList || node.items.size() > kHappeningsMax) {
      return absl::InvalidArgumentError(fmt::format("is {}, must be a list of at most {} things",
                                                    Describe(node), kHappeningsMax));
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(ReadHappening(fmt::format("happens[{}]", i), node.items[i], spec));
    }
    return absl::OkStatus();
  }

  absl::Status ReadHappening(const std::string& path, const YamlNode& node, DescribedSpec* spec) {
    Happening happening;
    Happening::Slow slow;
    Happening::Quota quota;
    Happening::Exits exits;
    Happening::Grows grows;
    Happening::Preempted preempted;
    int kinds = 0;
    const auto kind = [&](Taker taker, std::function<void()> then) -> Taker {
      return [&kinds, taker = std::move(taker), then = std::move(then)](const YamlNode& value) {
        MUSTER_RETURN_IF_ERROR(taker(value));
        then();
        ++kinds;
        return absl::OkStatus();
      };
    };
    const auto nothing = [] {};
    const Takers takers = {
        {"at", Into(&happening.at, ParseSeconds)},
        {"node",
         [&](const YamlNode& value) {
           happening.node = value.text.substr(0, 60);
           return absl::OkStatus();
         }},
        {"stays", Into(&happening.stays, job_file::ParseBool)},
        {"slow", kind(Into(&slow.factor, ParseFactor), [&] { happening.what = slow; })},
        {"quota", kind(Into(&quota.cpus, job_file::ParseCpu), [&] { happening.what = quota; })},
        {"exits", kind(Into(&exits.code, ParseExitCode), [&] { happening.what = exits; })},
        {"grows", kind(Into(&grows.bytes_per_minute, job_file::ParseMemory),
                       [&] { happening.what = grows; })},
        {"preempted",
         kind(Into(&preempted.no_room, ParseSeconds), [&] { happening.what = preempted; })},
        {"killed", kind(OnlyTrue(nothing), [&] { happening.what = Happening::Killed{}; })},
        {"hangs", kind(OnlyTrue(nothing), [&] { happening.what = Happening::Hangs{}; })}};
    MUSTER_RETURN_IF_ERROR(ReadGroup(path, node, takers));
    if (happening.node.empty() || happening.at == seconds(0) || kinds != 1) {
      return ErrorAt(
          node.position,
          fmt::format("{}: must have at, node and one of slow, quota, grows, hangs, "
                      "killed, exits, preempted, as in: {{at: 5m, node: worker-1, slow: 5}}",
                      path));
    }
    positions_.push_back(node.position);
    spec->happenings.push_back(std::move(happening));
    return absl::OkStatus();
  }

  /// Reports fields that do not fit together, with the position of the event.
  absl::Status Check(const DescribedSpec& spec) const {
    DescribedSpec one = spec;
    one.happenings.clear();
    MUSTER_RETURN_IF_ERROR_PREPEND(scaler::CheckDescribed(one), file_name_);
    for (size_t i = 0; i < spec.happenings.size(); ++i) {
      one.happenings = {spec.happenings[i]};
      const absl::Status checked = scaler::CheckDescribed(one);
      if (checked.ok()) continue;
      return ErrorAt(positions_[i], fmt::format("happens[{}]: {}", i, Message(checked)));
    }
    return absl::OkStatus();
  }

  const std::string file_name_;
  std::vector<job_file::Position> positions_;  // of the events
};

}  // namespace

absl::StatusOr<DescribedSpec> ReadDescribed(std::string_view text, const std::string& file_name) {
  MUSTER_ASSIGN_OR_RETURN(const YamlNode root, job_file::ParseYaml(text, file_name));
  return Reader(file_name).Read(root);
}

}  // namespace muster::simulate
