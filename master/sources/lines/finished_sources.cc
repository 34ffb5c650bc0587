#include "master/sources/lines/finished_sources.h"

#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

std::string IndexOf(const std::string& path) {
  return path + ".part";
}

std::string StampsOf(const std::string& path) {
  return path + ".seen.part";
}

SourceIndex SourceOf(const IndexFile& index, uint32_t number) {
  const IndexFile::Source& source = index.sources()[number];
  SourceIndex result{std::string(source.path), source.pin, {}, source.header};
  result.lines.file_bytes = source.pin.bytes;
  result.lines.record_count = source.record_count;
  const std::span<const uint64_t> starts = index.StartsOf(number);
  result.lines.starts.assign(starts.begin(), starts.end());
  return result;
}

}  // namespace

absl::Status WriteFinished(const std::string& path, const IndexParameters& parameters,
                           const std::vector<SourceIndex>& sources,
                           std::span<const FileStamp> stamps) {
  // The stamps come last: older ones beside a newer index do not fit the files, and these are read
  // again.
  MUSTER_RETURN_IF_ERROR(IndexFile::Write(IndexOf(path), parameters, sources));
  return WriteFileStamps(StampsOf(path), stamps);
}

std::map<std::string, SourceIndex> ReadFinished(const std::string& path,
                                                const IndexParameters& parameters,
                                                std::span<const std::string> files,
                                                std::span<const FileStamp> stamps) {
  std::map<std::string, SourceIndex> finished;
  const absl::StatusOr<IndexFile> index = IndexFile::Open(IndexOf(path));
  if (!index.ok() || index->parameters() != parameters) return finished;
  const std::vector<FileStamp> then = ReadFileStamps(StampsOf(path), index->sources().size());
  if (then.empty()) return finished;
  std::map<std::string_view, uint32_t> numbers;
  for (uint32_t i = 0; i < index->sources().size(); ++i) {
    numbers.emplace(index->sources()[i].path, i);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    const auto number = numbers.find(files[i]);
    if (number == numbers.end() || then[number->second] != stamps[i]) continue;
    finished.emplace(files[i], SourceOf(*index, number->second));
  }
  return finished;
}

void RemoveFinished(const std::string& path) {
  RemoveFile(IndexOf(path));
  RemoveFile(StampsOf(path));
}

}  // namespace muster
