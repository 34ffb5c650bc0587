#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

/// The job file that `muster train` makes from its options. Pure.
namespace muster {

/// The data of a dataset: files or record numbers.
struct TrainData {
  std::vector<std::string> files;
  std::optional<uint64_t> records;
  bool is_set() const { return !files.empty() || records.has_value(); }
};

/// What the options of `muster train` say of the job. What is not set is left to the job file's
/// defaults.
struct TrainJob {
  /// If empty, it is made from the trainer's file name.
  std::string name;
  /// The workers' command: a trainer and its arguments. A trainer that ends with ".py" is run by
  /// `python`.
  std::string trainer;
  std::vector<std::string> arguments;
  std::string python = "python3";
  TrainData train;
  TrainData test;
  bool header = false;
  /// "true", "false" or "shards".
  std::string shuffle = "true";
  std::optional<uint64_t> epochs;
  std::optional<uint64_t> minibatch_size;
  std::optional<uint64_t> workers;
  std::optional<uint64_t> servers;
  std::string state_directory;
};

/// The job file, as YAML for people. kInvalidArgument if the options contradict each other; values
/// out of bounds are left to whoever parses the file.
absl::StatusOr<std::string> JobFileOf(const TrainJob& job);

/// A name for the job of a trainer: "my-trainer" for "/opt/My_Trainer.py".
std::string NameOfTrainer(const std::string& trainer);

}  // namespace muster
