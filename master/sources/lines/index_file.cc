#include "master/sources/lines/index_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"
#include "base/words/parts.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr uint64_t kMagic = 0x584449525453554dULL;  // "MUSTRIDX" in the file
constexpr uint32_t kFormat = 2;

struct FileHeader {
  uint64_t magic = kMagic;
  uint32_t format = kFormat;
  uint32_t has_header = 0;
  uint32_t minibatch_size = 0;
  uint32_t minibatches_per_shard = 0;
  uint64_t source_count = 0;
  uint64_t start_count = 0;
  uint64_t path_bytes = 0;
  /// XXH3 of everything behind the header, seeded with the XXH3 of the header before this field.
  uint64_t checksum = 0;
};
static_assert(sizeof(FileHeader) == 56);

struct FileSource {
  uint64_t bytes = 0;
  uint64_t hash = 0;
  uint64_t record_count = 0;
  uint64_t header = 0;
  uint64_t start_count = 0;
  uint64_t path_bytes = 0;
};
static_assert(sizeof(FileSource) == 48);

template <typename T>
void AppendRaw(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint64_t Checksum(const FileHeader& header, std::string_view body) {
  const uint64_t seed = XXH3_64bits(&header, offsetof(FileHeader, checksum));
  return XXH3_64bits_withSeed(body.data(), body.size(), seed);
}

}  // namespace

absl::Status IndexFile::Write(const std::string& path, const IndexParameters& parameters,
                              const std::vector<SourceIndex>& sources) {
  FileHeader header;
  header.has_header = parameters.has_header ? 1 : 0;
  header.minibatch_size = parameters.minibatch_size;
  header.minibatches_per_shard = parameters.minibatches_per_shard;
  header.source_count = sources.size();
  for (const SourceIndex& source : sources) {
    header.start_count += source.lines.starts.size();
    header.path_bytes += source.path.size();
  }
  // Written in one piece, because it is as large as its parts.
  std::string contents;
  contents.reserve(sizeof(header) + header.source_count * sizeof(FileSource) +
                   header.start_count * sizeof(uint64_t) + header.path_bytes);
  AppendRaw(&contents, header);
  for (const SourceIndex& source : sources) {
    AppendRaw(&contents, FileSource{.bytes = source.pin.bytes,
                                    .hash = source.pin.hash,
                                    .record_count = source.lines.record_count,
                                    .header = source.header,
                                    .start_count = source.lines.starts.size(),
                                    .path_bytes = source.path.size()});
  }
  for (const SourceIndex& source : sources) {
    for (const uint64_t start : source.lines.starts) AppendRaw(&contents, start);
  }
  for (const SourceIndex& source : sources) contents += source.path;
  header.checksum = Checksum(header, std::string_view(contents).substr(sizeof(header)));
  std::memcpy(contents.data(), &header, sizeof(header));
  MUSTER_FAILPOINT_OR_RETURN("index.before-write");
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, contents));
  MUSTER_FAILPOINT_OR_RETURN("index.after-write");
  return absl::OkStatus();
}

absl::StatusOr<IndexFile> IndexFile::Open(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  IndexFile file(std::move(mapped));
  MUSTER_RETURN_IF_ERROR(file.Parse(path));
  return file;
}

absl::Status IndexFile::Parse(const std::string& path) {
  const auto damaged = [&path](std::string_view what) {
    return absl::DataLossError(fmt::format("the source index {} {}", path, what));
  };
  const std::string_view bytes = file_.bytes();
  FileHeader header;
  if (bytes.size() < sizeof(header)) return damaged("is cut short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return damaged("is not an index");
  if (header.format == 1) {
    return absl::FailedPreconditionError(kCutByEarlierVersion);
  }
  if (header.format != kFormat) {
    return damaged(fmt::format("has format {} instead of {}", header.format, kFormat));
  }
  const std::string_view body = bytes.substr(sizeof(header));
  if (Checksum(header, body) != header.checksum) return damaged("fails its checksum");
  // The checksum proves that Write made it, but the sizes are checked anyway.
  const uint64_t limit = body.size();
  if (header.source_count > limit || header.start_count > limit || header.path_bytes > limit ||
      header.source_count * sizeof(FileSource) + header.start_count * sizeof(uint64_t) +
              header.path_bytes !=
          limit) {
    return damaged("has a wrong length");
  }
  parameters_ = {.minibatch_size = header.minibatch_size,
                 .minibatches_per_shard = header.minibatches_per_shard,
                 .has_header = header.has_header != 0};
  // The header is 8-byte sized and the map page-aligned, so the starts are aligned.
  const char* const starts = body.data() + header.source_count * sizeof(FileSource);
  starts_ = {reinterpret_cast<const uint64_t*>(starts), header.start_count};
  std::string_view paths = body.substr(limit - header.path_bytes);
  uint64_t first_start = 0;
  for (uint64_t i = 0; i < header.source_count; ++i) {
    FileSource source;
    std::memcpy(&source, body.data() + i * sizeof(source), sizeof(source));
    if (source.path_bytes > paths.size() || source.start_count > header.start_count - first_start ||
        source.start_count != DivideUp(source.record_count, parameters_.Stride())) {
      return damaged("has a wrong source");
    }
    sources_.push_back({.path = paths.substr(0, source.path_bytes),
                        .pin = {.bytes = source.bytes, .hash = source.hash},
                        .record_count = source.record_count,
                        .header = source.header,
                        .first_start = first_start,
                        .start_count = source.start_count});
    paths.remove_prefix(source.path_bytes);
    first_start += source.start_count;
  }
  return absl::OkStatus();
}

std::span<const uint64_t> IndexFile::StartsOf(uint32_t source) const {
  return starts_.subspan(sources_[source].first_start, sources_[source].start_count);
}

SourceRun IndexFile::Locate(const RecordRun& run) const {
  const std::span<const uint64_t> starts = StartsOf(run.source);
  const uint64_t stride = parameters_.Stride();
  const uint64_t first = run.first_record / stride;
  const uint64_t end = DivideUp(run.first_record + run.record_count, stride);
  return {.first_record = run.first_record,
          .record_count = run.record_count,
          .byte_begin = starts[first],
          .byte_end = end < starts.size() ? starts[end] : sources_[run.source].pin.bytes,
          .records_before = static_cast<uint32_t>(run.first_record - first * stride),
          .records_behind =
              static_cast<uint32_t>(std::min(end * stride, sources_[run.source].record_count) -
                                    run.first_record - run.record_count)};
}

}  // namespace muster
