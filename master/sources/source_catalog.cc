#include "master/sources/source_catalog.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "master/sources/glob.h"
#include "master/sources/seen_files.h"
#include "sharding/shard_order.h"

namespace muster {
namespace {

constexpr char kWhatToDo[] =
    "put it back as it was, or start over with another spec.stateDirectory";

std::string IndexPath(const JobSpec& job, const DatasetSpec& spec) {
  return fmt::format("{}/index/{}.idx", job.state_directory, spec.name);
}

std::string SeenPath(const JobSpec& job, const DatasetSpec& spec) {
  return fmt::format("{}/index/{}.seen", job.state_directory, spec.name);
}

const LinesSpec& LinesOf(const DatasetSpec& spec) {
  return std::get<LinesSpec>(spec.source);
}

IndexParameters ParametersOf(const DatasetSpec& spec) {
  return {.minibatch_size = spec.minibatch_size,
          .minibatches_per_shard = spec.minibatches_per_shard,
          .has_header = LinesOf(spec).header};
}

absl::Status CheckParameters(const DatasetSpec& spec, const IndexFile& index) {
  const IndexParameters& was = index.parameters();
  if (was == ParametersOf(spec)) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the job began with minibatchSize {}, minibatchesPerShard {}, header {}, and now has {}, {}, "
      "{}; they cannot change: {}",
      was.minibatch_size, was.minibatches_per_shard, was.has_header, spec.minibatch_size,
      spec.minibatches_per_shard, LinesOf(spec).header, kWhatToDo));
}

/// The first path of sorted `a` that is not in sorted `b`, or nothing.
template <typename A, typename B>
std::string FirstMissing(const A& a, const B& b) {
  for (const auto& path : a) {
    if (!std::binary_search(b.begin(), b.end(), path)) return std::string(path);
  }
  return "";
}

struct PinnedFile {
  std::string_view path;
  SourcePin pin;
};

/// The first of `wanted` whose content is not in `there`, as often as it is wanted; or nothing.
std::string FirstMissingContent(const std::vector<PinnedFile>& wanted,
                                std::vector<PinnedFile> there) {
  for (const PinnedFile& file : wanted) {
    const auto found = std::ranges::find(there, file.pin, &PinnedFile::pin);
    if (found == there.end()) return std::string(file.path);
    there.erase(found);
  }
  return "";
}

/// Which file makes the difference where no path is as it was: the folder has moved, so contents
/// are compared.
absl::Status CheckMovedList(const std::vector<std::string>& files, const IndexFile& index) {
  std::vector<PinnedFile> was, now;
  for (const IndexFile::Source& source : index.sources()) was.push_back({source.path, source.pin});
  const auto pins = PinFiles(files, 0);
  for (size_t i = 0; i < files.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(pins[i].status());
    now.push_back({files[i], *pins[i]});
  }
  const bool fewer = now.size() < was.size();
  std::string change = fewer ? FirstMissingContent(was, now) : FirstMissingContent(now, was);
  if (!change.empty()) change += fewer ? " (its former path) is gone, and" : " is new, and";
  return absl::FailedPreconditionError(
      fmt::format("the job began with {} files, now there are {}: {} the others are in another "
                  "place; {}",
                  was.size(), now.size(), change, kWhatToDo));
}

absl::Status CheckFileList(const std::vector<std::string>& files, const IndexFile& index) {
  if (files.size() == index.sources().size()) return absl::OkStatus();
  std::vector<std::string_view> was;
  for (const IndexFile::Source& source : index.sources()) was.push_back(source.path);
  std::sort(was.begin(), was.end());
  const bool moved = std::ranges::none_of(
      files, [&](const auto& file) { return std::ranges::binary_search(was, file); });
  if (moved) return CheckMovedList(files, index);
  const std::string gone = FirstMissing(was, files);
  if (files.size() < was.size() && !gone.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the job began with {} files, now there are {}: {} is gone; {}", was.size(),
                    files.size(), gone, kWhatToDo));
  }
  const std::string added = FirstMissing(files, was);
  return absl::FailedPreconditionError(fmt::format(
      "the job began with {} files, now there are {}{}; the data of a job cannot change: take it "
      "out, or start over with another spec.stateDirectory",
      was.size(), files.size(), added.empty() ? "" : fmt::format(": {} is new", added)));
}

absl::Status CheckPin(const std::string& file, const SourcePin& pin, const SourcePin& was) {
  if (pin == was) return absl::OkStatus();
  const std::string change = pin.bytes != was.bytes
                                 ? fmt::format("it had {} bytes and has {}", was.bytes, pin.bytes)
                                 : fmt::format("same size of {} bytes, other content", was.bytes);
  return absl::FailedPreconditionError(
      fmt::format("{} has changed since the job began ({}); {}", file, change, kWhatToDo));
}

absl::StatusOr<std::vector<FileSight>> Sights(const std::vector<std::string>& files) {
  std::vector<FileSight> sights;
  for (const absl::StatusOr<FileSight>& sight : SightFiles(files, 0)) {
    MUSTER_RETURN_IF_ERROR(sight.status());
    sights.push_back(*sight);
  }
  return sights;
}

/// Reads the pins of the files that are not as they were `seen`. What was looked at before they
/// were read may be taken for seen from now on.
struct Checked {
  std::vector<FileSight> sights;
  bool news = false;
};
absl::StatusOr<Checked> CheckPins(const std::vector<std::string>& files, const IndexFile& index,
                                  const std::string& seen_path) {
  const std::vector<FileSight> seen = ReadSeenFiles(seen_path, files.size());
  Checked checked;
  MUSTER_ASSIGN_OR_RETURN(checked.sights, Sights(files));
  std::vector<size_t> differ;
  std::vector<std::string> paths;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!seen.empty() && seen[i] == checked.sights[i]) continue;
    differ.push_back(i);
    paths.push_back(files[i]);
  }
  const auto pins = PinFiles(paths, 0);
  for (size_t i = 0; i < differ.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(pins[i].status());
    MUSTER_RETURN_IF_ERROR(CheckPin(paths[i], *pins[i], index.sources()[differ[i]].pin));
  }
  checked.news = !differ.empty();
  return checked;
}

absl::StatusOr<Checked> CheckPinned(const DatasetSpec& spec, const std::vector<std::string>& files,
                                    const IndexFile& index, const std::string& seen_path) {
  MUSTER_RETURN_IF_ERROR(CheckParameters(spec, index));
  MUSTER_RETURN_IF_ERROR(CheckFileList(files, index));
  return CheckPins(files, index, seen_path);
}

absl::Status CheckNotEmpty(const DatasetSpec& spec, const std::vector<SourceIndex>& sources) {
  for (const SourceIndex& source : sources) {
    if (source.lines.record_count > 0) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "there is no record in the {} {} of {}{}; put the data there, or correct "
      "spec.datasets[].files",
      sources.size(), sources.size() == 1 ? "file" : "files", LinesOf(spec).files.front(),
      LinesOf(spec).header ? " (header: true takes the first line of each)" : ""));
}

/// A dataset on its way: with the index that was on disk, or with a new one to be written.
struct Candidate {
  std::vector<std::string> files;
  std::optional<IndexFile> index;
  std::vector<SourceIndex> scanned;
  Checked checked;
};

absl::StatusOr<Candidate> CheckOrScan(const JobSpec& job, const DatasetSpec& spec,
                                      const ProgressFn& progress) {
  Candidate result;
  MUSTER_ASSIGN_OR_RETURN(result.files, ExpandGlobs(LinesOf(spec).files));
  auto index = IndexFile::Open(IndexPath(job, spec));
  if (index.ok()) {
    MUSTER_ASSIGN_OR_RETURN(result.checked,
                            CheckPinned(spec, result.files, *index, SeenPath(job, spec)));
    result.index = *std::move(index);
    return result;
  }
  const bool damaged = index.status().code() == absl::StatusCode::kDataLoss;
  if (!damaged && index.status().code() != absl::StatusCode::kNotFound) return index.status();
  if (damaged) Log(LogLevel::kWarning, "{}; indexing again", Message(index.status()));
  const IndexOptions options{
      .header = LinesOf(spec).header ? HeaderLine::kPresent : HeaderLine::kNone,
      .records_per_shard = spec.minibatch_size * spec.minibatches_per_shard};
  const auto report = [&](const IndexProgress& at) {
    if (progress) progress({spec.name, at.bytes_done, at.bytes_total});
  };
  MUSTER_ASSIGN_OR_RETURN(result.checked.sights, Sights(result.files));
  result.checked.news = true;
  MUSTER_ASSIGN_OR_RETURN(result.scanned, IndexFiles(result.files, options, report));
  MUSTER_RETURN_IF_ERROR(CheckNotEmpty(spec, result.scanned));
  return result;
}

absl::Status WriteAndOpen(const JobSpec& job, const DatasetSpec& spec, Candidate* candidate) {
  if (!candidate->index) {
    const std::string path = IndexPath(job, spec);
    MUSTER_RETURN_IF_ERROR(IndexFile::Write(path, ParametersOf(spec), candidate->scanned));
    candidate->scanned = {};
    MUSTER_ASSIGN_OR_RETURN(candidate->index, IndexFile::Open(path));
  }
  if (!candidate->checked.news) return absl::OkStatus();
  return WriteSeenFiles(SeenPath(job, spec), candidate->checked.sights);
}

}  // namespace

SourceCatalog::SourceCatalog(uint64_t seed, std::vector<Dataset> datasets)
    : seed_(seed), datasets_(std::move(datasets)) {
  uint64_t train_steps = 0;
  for (Dataset& dataset : datasets_) {
    dataset.epoch_steps = dataset.layout.shard_count() * dataset.spec.minibatches_per_shard;
    if (dataset.spec.mode != DatasetMode::kTrain) continue;
    dataset.steps_before = train_steps;
    train_steps += dataset.epoch_steps;
  }
  for (Dataset& dataset : datasets_) {
    if (dataset.spec.mode == DatasetMode::kTrain) dataset.epoch_steps = train_steps;
  }
}

absl::StatusOr<std::unique_ptr<SourceCatalog>> SourceCatalog::Open(const JobSpec& job,
                                                                   const ProgressFn& progress) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(job.state_directory + "/index"));
  std::vector<Candidate> candidates;
  for (const DatasetSpec& spec : job.datasets) {
    if (std::holds_alternative<TopicSpec>(spec.source)) {
      candidates.emplace_back();
      continue;
    }
    auto candidate = CheckOrScan(job, spec, progress);
    MUSTER_RETURN_IF_ERROR_PREPEND(candidate.status(), fmt::format("dataset '{}'", spec.name));
    candidates.push_back(*std::move(candidate));
  }
  // Written only when all are good: an index pins its data, and a job with a mistake in one dataset
  // shall be fixed and run again without a new state directory.
  std::vector<Dataset> datasets;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const DatasetSpec& spec = job.datasets[i];
    if (std::holds_alternative<TopicSpec>(spec.source)) {
      datasets.push_back(AssembleStream(spec));
      continue;
    }
    MUSTER_RETURN_IF_ERROR_PREPEND(WriteAndOpen(job, spec, &candidates[i]),
                                   fmt::format("dataset '{}'", spec.name));
    datasets.push_back(
        Assemble(spec, std::move(candidates[i].files), *std::move(candidates[i].index)));
  }
  return std::unique_ptr<SourceCatalog>(new SourceCatalog(job.seed, std::move(datasets)));
}

absl::StatusOr<std::unique_ptr<SourceCatalog>> SourceCatalog::OpenIndexes(const JobSpec& job) {
  std::vector<Dataset> datasets;
  for (const DatasetSpec& spec : job.datasets) {
    if (std::holds_alternative<TopicSpec>(spec.source)) {
      datasets.push_back(AssembleStream(spec));
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(IndexFile index, IndexFile::Open(IndexPath(job, spec)));
    MUSTER_RETURN_IF_ERROR_PREPEND(CheckParameters(spec, index),
                                   fmt::format("dataset '{}'", spec.name));
    std::vector<std::string> files;
    for (const IndexFile::Source& source : index.sources()) files.emplace_back(source.path);
    datasets.push_back(Assemble(spec, std::move(files), std::move(index)));
  }
  return std::unique_ptr<SourceCatalog>(new SourceCatalog(job.seed, std::move(datasets)));
}

absl::Status SourceCatalog::Check(const JobSpec& job, const ProgressFn& progress) {
  for (const DatasetSpec& spec : job.datasets) {
    if (std::holds_alternative<TopicSpec>(spec.source)) continue;
    MUSTER_RETURN_IF_ERROR_PREPEND(CheckOrScan(job, spec, progress).status(),
                                   fmt::format("dataset '{}'", spec.name));
  }
  return absl::OkStatus();
}

SourceCatalog::Dataset SourceCatalog::Assemble(const DatasetSpec& spec,
                                               std::vector<std::string> files, IndexFile index) {
  std::vector<uint64_t> records;
  for (const IndexFile::Source& source : index.sources()) records.push_back(source.record_count);
  ShardLayout layout(std::move(records), spec.minibatch_size, spec.minibatches_per_shard);
  return {spec, std::move(files), std::move(index), std::move(layout), 0, 0};
}

const ShardLayout& SourceCatalog::layout(DatasetId dataset) const {
  MUSTER_CHECK(dataset.value() < datasets_.size());
  return datasets_[dataset.value()].layout;
}

const std::vector<std::string>& SourceCatalog::files(DatasetId dataset) const {
  MUSTER_CHECK(dataset.value() < datasets_.size());
  return datasets_[dataset.value()].files;
}

ShardWork SourceCatalog::WorkOf(const ShardId& shard) const {
  MUSTER_CHECK(shard.dataset.value() < datasets_.size());
  const Dataset& dataset = datasets_[shard.dataset.value()];
  const DatasetSpec& spec = dataset.spec;
  const uint64_t shard_count = dataset.layout.shard_count();
  const ShardOrder order(seed_, shard.dataset, shard.epoch, shard_count, spec.shuffle);
  const uint64_t number = order.NumberAt(shard.index);
  const ShardLayout::Range range = dataset.layout.RangeOf(number);
  const IndexFile::Bytes bytes = dataset.index->BytesOf(range.source, number);
  const SourcePin& pin = dataset.index->sources()[range.source].pin;
  ShardWork work;
  work.dataset_name = spec.name;
  work.mode = spec.mode;
  work.path = dataset.files[range.source];
  work.source_bytes = pin.bytes;
  work.source_hash = pin.hash;
  work.first_record = range.first_record;
  work.record_count = range.record_count;
  work.byte_begin = bytes.begin;
  work.byte_end = bytes.end;
  work.minibatch_size = spec.minibatch_size;
  work.has_header = HasHeader(spec.source);
  work.shuffle_seed = spec.shuffle ? RecordSeed(seed_, shard) : 0;
  work.first_step = uint64_t{shard.epoch.value()} * dataset.epoch_steps + dataset.steps_before +
                    shard.index.value() * spec.minibatches_per_shard;
  return work;
}

std::vector<std::pair<std::string, std::string>> SourceCatalog::Fingerprint() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const Dataset& dataset : datasets_) {
    if (!dataset.index.has_value()) {
      // What is in a topic changes; where it begins and ends is among the fixed fields.
      result.emplace_back(dataset.spec.name, "topic");
      continue;
    }
    const ShardLayout& layout = dataset.layout;
    uint64_t hash =
        HashWords(layout.minibatch_size(), layout.minibatches_per_shard(),
                  HasHeader(dataset.spec.source) ? 1 : 0, dataset.index->sources().size());
    for (const IndexFile::Source& source : dataset.index->sources()) {
      hash = HashWords(hash, source.pin.bytes, source.pin.hash, source.record_count);
    }
    result.emplace_back(dataset.spec.name, fmt::format("{:016x}", hash));
  }
  return result;
}

}  // namespace muster
