#include "master/sources/lines/lines_dataset.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "master/sources/lines/glob.h"
#include "master/sources/lines/pinned_files.h"

namespace muster {
namespace {

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

}  // namespace

LinesDataset::LinesDataset(const JobSpec& job, DatasetId dataset)
    : dataset_(job.datasets[dataset.value()]),
      lines_(std::get<LinesSpec>(dataset_.source)),
      index_path_(fmt::format("{}/index/{}.idx", job.state_directory, dataset_.name)),
      seen_path_(fmt::format("{}/index/{}.seen", job.state_directory, dataset_.name)) {}

absl::Status LinesDataset::Look(const ProgressFn& progress) {
  MUSTER_ASSIGN_OR_RETURN(files_, ExpandGlobs(lines_.files));
  auto index = IndexFile::Open(index_path_);
  if (index.ok()) {
    MUSTER_RETURN_IF_ERROR(CheckParameters(ParametersOf(dataset_, lines_), *index));
    MUSTER_ASSIGN_OR_RETURN(PinnedCheck checked, CheckPinnedFiles(files_, *index, seen_path_));
    stamps_ = std::move(checked.stamps);
    news_ = checked.news;
    index_ = *std::move(index);
    return absl::OkStatus();
  }
  const bool damaged = index.status().code() == absl::StatusCode::kDataLoss;
  if (!damaged && index.status().code() != absl::StatusCode::kNotFound) return index.status();
  if (damaged) Log(LogLevel::kWarning, "{}; indexing again", Message(index.status()));
  return Scan(progress);
}

absl::Status LinesDataset::Scan(const ProgressFn& progress) {
  const IndexOptions options{
      .header = lines_.header ? HeaderLine::kPresent : HeaderLine::kNone,
      .records_per_shard = dataset_.minibatch_size * dataset_.minibatches_per_shard};
  const auto report = [&](const IndexProgress& at) {
    if (progress) progress({dataset_.name, at.bytes_done, at.bytes_total});
  };
  MUSTER_ASSIGN_OR_RETURN(stamps_, LookAt(files_));
  news_ = true;
  MUSTER_ASSIGN_OR_RETURN(scanned_, IndexFiles(files_, options, report));
  return CheckNotEmpty(lines_, scanned_);
}

absl::Status LinesDataset::Keep() {
  if (!index_.has_value()) {
    const IndexParameters parameters = ParametersOf(dataset_, lines_);
    MUSTER_RETURN_IF_ERROR(IndexFile::Write(index_path_, parameters, scanned_));
    scanned_ = {};
    MUSTER_ASSIGN_OR_RETURN(index_, IndexFile::Open(index_path_));
  }
  Assemble();
  if (!news_) return absl::OkStatus();
  return WriteFileStamps(seen_path_, std::exchange(stamps_, {}));
}

absl::Status LinesDataset::OpenKept() {
  MUSTER_ASSIGN_OR_RETURN(index_, IndexFile::Open(index_path_));
  MUSTER_RETURN_IF_ERROR_PREPEND(CheckParameters(ParametersOf(dataset_, lines_), *index_),
                                 fmt::format("dataset '{}'", dataset_.name));
  files_.clear();
  for (const IndexFile::Source& source : index_->sources()) files_.emplace_back(source.path);
  Assemble();
  return absl::OkStatus();
}

void LinesDataset::Assemble() {
  std::vector<uint64_t> records;
  for (const IndexFile::Source& source : index_->sources()) records.push_back(source.record_count);
  layout_ =
      ShardLayout(std::move(records), dataset_.minibatch_size, dataset_.minibatches_per_shard);
}

std::string LinesDataset::Fingerprint() const {
  MUSTER_CHECK(index_.has_value());
  uint64_t hash = HashWords(layout_.minibatch_size(), layout_.minibatches_per_shard(),
                            lines_.header ? 1 : 0, index_->sources().size());
  for (const IndexFile::Source& source : index_->sources()) {
    hash = HashWords(hash, source.pin.bytes, source.pin.hash, source.record_count);
  }
  return fmt::format("{:016x}", hash);
}

void LinesDataset::Locate(uint32_t part, uint64_t number, ShardWork* work) const {
  const IndexFile::Bytes bytes = index_->BytesOf(part, number);
  const SourcePin& pin = index_->sources()[part].pin;
  work->path = files_[part];
  work->source_bytes = pin.bytes;
  work->source_hash = pin.hash;
  work->byte_begin = bytes.begin;
  work->byte_end = bytes.end;
  work->has_header = lines_.header;
}

}  // namespace muster
