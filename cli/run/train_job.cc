#include "cli/run/train_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kNameBytesMax = 63;

/// In double quotes, so that YAML takes it for nothing but text.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string QuotedList(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(Quoted(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

/// ", NAME: VALUE", or nothing.
std::string Given(std::string_view name, const std::optional<uint64_t>& value) {
  return value.has_value() ? fmt::format(", {}: {}", name, *value) : "";
}

absl::StatusOr<std::string> SourceText(const TrainData& data, bool header,
                                       std::string_view option) {
  if (!data.files.empty() && data.records.has_value()) {
    return absl::InvalidArgumentError(fmt::format(
        "--{0} and --{0}-records are both given: a dataset has files or record numbers", option));
  }
  if (data.records.has_value()) return fmt::format("records: {}", *data.records);
  return fmt::format("files: {}{}", QuotedList(data.files), header ? ", header: true" : "");
}

bool IsPython(const std::string& trainer) {
  return trainer.ends_with(".py");
}

std::vector<std::string> CommandOfWorker(const TrainJob& job) {
  std::vector<std::string> command;
  if (IsPython(job.trainer)) command.push_back(job.python);
  command.push_back(job.trainer);
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return command;
}

}  // namespace

std::string NameOfTrainer(const std::string& trainer) {
  std::string name = std::filesystem::path(trainer).stem().string().substr(0, kNameBytesMax);
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    const bool fits = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (!fits) letter = '-';
  }
  const size_t begin = name.find_first_not_of('-');
  if (begin == std::string::npos) return "train";
  return name.substr(begin, name.find_last_not_of('-') + 1 - begin);
}

absl::StatusOr<std::string> JobFileOf(const TrainJob& job) {
  if (!job.train.is_set()) {
    return absl::InvalidArgumentError(
        "there is nothing to train on: give files with --data 'train-*.csv', or a number of "
        "records with --data-records 1000000");
  }
  if (job.header && job.train.files.empty() && job.test.files.empty()) {
    return absl::InvalidArgumentError("--header is for files, and record numbers have none");
  }
  const std::string name = job.name.empty() ? NameOfTrainer(job.trainer) : job.name;
  MUSTER_ASSIGN_OR_RETURN(const std::string train, SourceText(job.train, job.header, "data"));
  const std::string size = Given("minibatchSize", job.minibatch_size);
  std::string text = fmt::format(
      "apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {{name: {}}}\nspec:\n", Quoted(name));
  if (!job.state_directory.empty()) {
    text += fmt::format("  stateDirectory: {}\n", Quoted(job.state_directory));
  }
  text += fmt::format("  datasets:\n    - {{name: train, {}{}{}, shuffle: {}}}\n", train,
                      Given("epochs", job.epochs), size, job.shuffle);
  if (job.test.is_set()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string test, SourceText(job.test, job.header, "test"));
    text += fmt::format("    - {{name: test, {}{}, mode: evaluate}}\n", test, size);
  }
  text += "  replicaSpecs:\n";
  if (job.servers.has_value()) text += fmt::format("    ps: {{replicas: {}}}\n", *job.servers);
  const std::string replicas =
      job.workers.has_value() ? fmt::format("replicas: {}, ", *job.workers) : "";
  // What a trainer prints is in its log at once.
  const std::string env = IsPython(job.trainer) ? ", env: {PYTHONUNBUFFERED: \"1\"}" : "";
  text += fmt::format("    worker: {{{}command: {}{}}}\n", replicas,
                      QuotedList(CommandOfWorker(job)), env);
  return text;
}

}  // namespace muster
