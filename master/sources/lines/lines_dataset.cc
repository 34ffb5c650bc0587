#include "master/sources/lines/lines_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "master/sources/lines/file_reader.h"
#include "master/sources/lines/finished_sources.h"
#include "master/sources/lines/glob.h"
#include "master/sources/lines/parallel.h"
#include "master/sources/lines/pinned_files.h"
#include "sharding/lines/file_start.h"

namespace muster {
namespace {

/// So often at most, what is finished is written.
constexpr uint64_t kPartsMax = 64;

IndexParameters ParametersOf(const DatasetSpec& dataset, const LinesSpec& lines) {
  return {.minibatch_size = dataset.minibatch_size,
          .minibatches_per_shard = dataset.minibatches_per_shard,
          .has_header = lines.header};
}

absl::Status CheckNotEmpty(const LinesSpec& lines, const std::vector<SourceIndex>& sources) {
  for (const SourceIndex& source : sources) {
    if (source.lines.record_count > 0) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "there is no record in the {} {} of {}{}. Put the data there, or correct "
      "spec.datasets[].files",
      sources.size(), sources.size() == 1 ? "file" : "files", lines.files.front(),
      lines.header ? " (with header: true, the first line of a file is not a record)" : ""));
}

absl::Status CheckStart(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  std::array<char, kFileStartBytes> beginning;
  MUSTER_ASSIGN_OR_RETURN(const size_t bytes, file.ReadAt(0, beginning));
  return CheckFileStart(path, std::string_view(beginning.data(), bytes));
}

/// A file that cannot be read, or is no text, is found before hours are spent on others.
absl::Status CheckReadable(const std::vector<std::string>& files, const AliveFn& alive) {
  std::vector<absl::Status> opened(files.size());
  ForEachInParallel(files.size(), 0, [&](size_t i) { opened[i] = CheckStart(files[i]); }, alive);
  for (const absl::Status& status : opened) MUSTER_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace

LinesDataset::LinesDataset(const JobSpec& job, DatasetId dataset, uint64_t part_bytes)
    : seed_(job.seed),
      id_(dataset),
      dataset_(job.datasets[dataset.value()]),
      lines_(std::get<LinesSpec>(dataset_.source)),
      index_path_(fmt::format("{}/index/{}.idx", job.state_directory, dataset_.name)),
      seen_path_(fmt::format("{}/index/{}.seen", job.state_directory, dataset_.name)),
      part_bytes_(part_bytes) {}

absl::Status LinesDataset::Look(const LookOptions& look) {
  MUSTER_ASSIGN_OR_RETURN(files_, ExpandGlobs(lines_.files));
  auto index = IndexFile::Open(index_path_);
  if (index.ok()) {
    MUSTER_RETURN_IF_ERROR(CheckParameters(ParametersOf(dataset_, lines_), *index));
    MUSTER_ASSIGN_OR_RETURN(PinnedCheck checked,
                            CheckPinnedFiles(files_, *index, seen_path_, look.alive));
    stamps_ = std::move(checked.stamps);
    news_ = checked.news;
    index_ = *std::move(index);
    return absl::OkStatus();
  }
  const bool damaged = index.status().code() == absl::StatusCode::kDataLoss;
  if (!damaged && index.status().code() != absl::StatusCode::kNotFound) return index.status();
  if (damaged) Log(LogLevel::kWarning, "{}; indexing again", Message(index.status()));
  return Scan(look);
}

LinesDataset::Group LinesDataset::GroupFrom(size_t first,
                                            const std::map<std::string, SourceIndex>& finished,
                                            uint64_t bytes_max) const {
  constexpr size_t kFilesMax = 4'096;
  Group group{.first = first, .last = first};
  while (group.last < files_.size() && group.bytes < bytes_max && group.last - first < kFilesMax &&
         !finished.contains(files_[group.last])) {
    group.bytes += stamps_[group.last++].bytes;
  }
  return group;
}

absl::Status LinesDataset::Scan(const LookOptions& look) {
  MUSTER_ASSIGN_OR_RETURN(stamps_, LookAt(files_, look.alive));
  MUSTER_RETURN_IF_ERROR(CheckReadable(files_, look.alive));
  news_ = true;
  scanned_.clear();
  std::map<std::string, SourceIndex> finished =
      ReadFinished(index_path_, ParametersOf(dataset_, lines_), files_, stamps_);
  uint64_t bytes_total = 0;
  for (const FileStamp& stamp : stamps_) bytes_total += stamp.bytes;
  const uint64_t bytes_max = std::max(part_bytes_, bytes_total / kPartsMax);
  uint64_t bytes_done = 0;
  uint64_t unwritten = 0;
  const IndexOptions options{.header = lines_.header ? HeaderLine::kPresent : HeaderLine::kNone,
                             .stride = ParametersOf(dataset_, lines_).Stride(),
                             .alive = look.alive};
  const auto report = [&](const IndexProgress& at) {
    if (look.progress) look.progress({dataset_.name, bytes_done + at.bytes_done, bytes_total});
  };
  while (scanned_.size() < files_.size()) {
    const size_t first = scanned_.size();
    if (const auto found = finished.find(files_[first]); found != finished.end()) {
      bytes_done += stamps_[first].bytes;
      scanned_.push_back(found->second);
      continue;
    }
    const Group group = GroupFrom(first, finished, bytes_max);
    const std::vector<std::string> files(files_.begin() + static_cast<std::ptrdiff_t>(group.first),
                                         files_.begin() + static_cast<std::ptrdiff_t>(group.last));
    MUSTER_ASSIGN_OR_RETURN(std::vector<SourceIndex> scanned, IndexFiles(files, options, report));
    std::ranges::move(scanned, std::back_inserter(scanned_));
    bytes_done += group.bytes;
    unwritten += group.bytes;
    if (look.keeps_parts && unwritten >= bytes_max) {
      unwritten = 0;
      KeepScanned();
    }
  }
  return CheckNotEmpty(lines_, scanned_);
}

void LinesDataset::KeepScanned() const {
  const std::span<const FileStamp> stamps(stamps_.data(), scanned_.size());
  const absl::Status written =
      WriteFinished(index_path_, ParametersOf(dataset_, lines_), scanned_, stamps);
  if (!written.ok()) Log(LogLevel::kWarning, "{}; indexing continues", Message(written));
}

absl::Status LinesDataset::Keep() {
  if (!index_.has_value()) {
    const IndexParameters parameters = ParametersOf(dataset_, lines_);
    MUSTER_RETURN_IF_ERROR(IndexFile::Write(index_path_, parameters, scanned_));
    scanned_ = {};
    RemoveFinished(index_path_);
    MUSTER_ASSIGN_OR_RETURN(index_, IndexFile::Open(index_path_));
  }
  MUSTER_RETURN_IF_ERROR(Assemble());
  if (!news_) return absl::OkStatus();
  return WriteFileStamps(seen_path_, std::exchange(stamps_, {}));
}

absl::Status LinesDataset::OpenKept() {
  MUSTER_ASSIGN_OR_RETURN(index_, IndexFile::Open(index_path_));
  MUSTER_RETURN_IF_ERROR_PREPEND(CheckParameters(ParametersOf(dataset_, lines_), *index_),
                                 fmt::format("dataset '{}'", dataset_.name));
  files_.clear();
  for (const IndexFile::Source& source : index_->sources()) files_.emplace_back(source.path);
  return Assemble();
}

absl::Status LinesDataset::Assemble() {
  std::vector<ShardLayout::Source> sources;
  for (const IndexFile::Source& source : index_->sources()) {
    sources.push_back({.records = source.record_count, .header = source.header});
  }
  layout_ = std::make_shared<const ShardLayout>(
      std::move(sources),
      ShardLayout::Options{.seed = seed_,
                           .dataset = id_,
                           .minibatch_size = dataset_.minibatch_size,
                           .minibatches_per_shard = dataset_.minibatches_per_shard,
                           .shuffle = dataset_.shuffle});
  if (layout_->most_runs() <= layout_->runs_max()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "dataset '{}': a minibatch of {} may have records of {} files, and a worker takes those of "
      "{} at once. Make spec.datasets[].minibatchSize smaller, or join small files",
      dataset_.name, CountText(dataset_.minibatch_size, "record"), CountText(layout_->most_runs()),
      CountText(layout_->runs_max())));
}

std::string LinesDataset::Fingerprint() const {
  MUSTER_CHECK(index_.has_value());
  const IndexParameters& parameters = index_->parameters();
  uint64_t hash = HashWords(parameters.minibatch_size, parameters.minibatches_per_shard,
                            lines_.header ? 1 : 0, index_->sources().size());
  for (const IndexFile::Source& source : index_->sources()) {
    hash = HashWords(hash, source.pin.bytes, source.pin.hash, source.record_count);
  }
  // Earlier versions cut such data in another way.
  if (layout_->is_cut_smaller()) hash = HashWords(hash, layout_->shard_count());
  return fmt::format("{:016x}", hash);
}

void LinesDataset::Locate(std::span<const RecordRun> runs, ShardWork* work) const {
  work->has_header = lines_.header;
  std::map<uint32_t, uint32_t> numbers;  // source -> position in `files`
  for (const RecordRun& run : runs) {
    const auto [number, is_new] =
        numbers.try_emplace(run.source, static_cast<uint32_t>(work->files.size()));
    if (is_new) {
      const SourcePin& pin = index_->sources()[run.source].pin;
      work->files.push_back({.path = files_[run.source], .bytes = pin.bytes, .hash = pin.hash});
    }
    work->runs.push_back(index_->Locate(run));
    work->runs.back().file = number->second;
  }
}

}  // namespace muster
