// LinesDataset::Preview.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "base/words/parts.h"
#include "master/sources/lines/glob.h"
#include "master/sources/lines/lines_dataset.h"

namespace muster {
namespace {

constexpr size_t kSampleBytes = 64 << 10;

uint64_t EstimateRecords(const std::string& path, uint64_t bytes, bool header) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  std::string sample(kSampleBytes, '\0');
  sample.resize(std::fread(sample.data(), 1, sample.size(), file));
  std::fclose(file);
  uint64_t lines = static_cast<uint64_t>(std::count(sample.begin(), sample.end(), '\n'));
  if (sample.size() == bytes) {  // the whole file
    if (!sample.empty() && sample.back() != '\n') ++lines;
  } else if (lines > 0) {
    lines = bytes * lines / sample.size();
  }
  return header && lines > 0 ? lines - 1 : lines;
}

/// The totals of all files; the master counts records exactly.
struct Estimate {
  uint64_t bytes = 0;
  uint64_t records = 0;
};

absl::StatusOr<Estimate> EstimateAll(const std::vector<std::string>& files, bool header) {
  Estimate all;
  for (const std::string& file : files) {
    struct stat info;
    if (::stat(file.c_str(), &info) != 0) return ErrnoStatus(errno, file);
    const uint64_t bytes = static_cast<uint64_t>(info.st_size);
    const uint64_t records = EstimateRecords(file, bytes, header);
    all.bytes += bytes;
    all.records += records;
  }
  return all;
}

}  // namespace

absl::StatusOr<SourcePreview> LinesDataset::Preview() const {
  absl::StatusOr<std::vector<std::string>> files = ExpandGlobs(lines_.files);
  if (!files.ok()) {
    return absl::Status(files.status().code(),
                        fmt::format("dataset {}: {}; correct spec.datasets[].files", dataset_.name,
                                    Message(files.status())));
  }
  MUSTER_ASSIGN_OR_RETURN(const Estimate all, EstimateAll(*files, lines_.header));
  if (all.bytes == 0) {
    return absl::InvalidArgumentError(
        fmt::format("dataset {}: it has no record, because all of its {} files are empty (the "
                    "first is {}). Put the data there, or correct spec.datasets[].files",
                    dataset_.name, files->size(), files->front()));
  }
  const uint64_t shards = DivideUp(
      all.records,
      std::max<uint64_t>(uint64_t{dataset_.minibatch_size} * dataset_.minibatches_per_shard, 1));
  SourcePreview preview = BeginPreview(dataset_);
  preview.what = fmt::format("{}, {}, about {} in {}", CountText(files->size(), "file"),
                             CountText(all.bytes, "byte"), CountText(all.records, "record"),
                             CountText(shards, "shard"));
  preview.facts["files"] = *files;
  preview.facts["bytes"] = all.bytes;
  preview.facts["records_estimate"] = all.records;
  preview.facts["shards_estimate"] = shards;
  preview.parts = *std::move(files);
  return preview;
}

}  // namespace muster
