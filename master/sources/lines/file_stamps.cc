#include "master/sources/lines/file_stamps.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "base/status.h"
#include "master/sources/lines/parallel.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");
static_assert(sizeof(FileStamp) == 32);

constexpr uint64_t kSeenMagic = 0x4e45455352545355ULL;  // "USTRSEEN" in the file

struct SeenHeader {
  uint64_t magic = kSeenMagic;
  uint64_t count = 0;
  uint64_t checksum = 0;  // XXH3 of all that follows
};

absl::StatusOr<FileStamp> StampFile(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot stat {}", path));
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return FileStamp{info.st_ino, static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim),
                   nanoseconds(info.st_ctim)};
}

}  // namespace

std::vector<absl::StatusOr<FileStamp>> StampFiles(const std::vector<std::string>& paths,
                                                  uint32_t threads, const AliveFn& alive) {
  std::vector<absl::StatusOr<FileStamp>> stamps(paths.size(), absl::UnknownError("not seen"));
  ForEachInParallel(
      paths.size(), threads, [&](size_t i) { stamps[i] = StampFile(paths[i]); }, alive);
  return stamps;
}

absl::Status WriteFileStamps(const std::string& path, std::span<const FileStamp> stamps) {
  const std::string_view body(reinterpret_cast<const char*>(stamps.data()), stamps.size_bytes());
  const SeenHeader header{.count = stamps.size(),
                          .checksum = XXH3_64bits(body.data(), body.size())};
  std::string contents(reinterpret_cast<const char*>(&header), sizeof(header));
  contents += body;
  return WriteFileAtomically(path, contents);
}

std::vector<FileStamp> ReadFileStamps(const std::string& path, size_t count) {
  const size_t bytes = sizeof(SeenHeader) + count * sizeof(FileStamp);
  const absl::StatusOr<std::string> contents = ReadFile(path, bytes);
  if (!contents.ok() || contents->size() != bytes) return {};
  SeenHeader header;
  std::memcpy(&header, contents->data(), sizeof(header));
  const std::string_view body = std::string_view(*contents).substr(sizeof(header));
  if (header.magic != kSeenMagic || header.count != count ||
      header.checksum != XXH3_64bits(body.data(), body.size())) {
    return {};
  }
  std::vector<FileStamp> stamps(count);
  std::memcpy(stamps.data(), body.data(), body.size());
  return stamps;
}

}  // namespace muster
