#include "sharding/lines/file_start.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/status.h"
#include "sharding/lines/line_index.h"

namespace muster {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf"sv;

struct Start {
  std::string_view bytes;
  std::string_view what;
};

/// A longer one comes before its own beginning.
constexpr std::array kEncodings = {
    Start{"\xff\xfe\0\0"sv, "UTF-32"},
    Start{"\0\0\xfe\xff"sv, "UTF-32"},
    Start{"\xff\xfe"sv, "UTF-16"},
    Start{"\xfe\xff"sv, "UTF-16"},
};

/// Those with few bytes are longer here than what their tools check, because text may begin so.
constexpr std::array kFormats = {
    Start{"\x1f\x8b\x08"sv, "gzip"},
    Start{"\x28\xb5\x2f\xfd"sv, "zstd"},
    Start{"\xfd\x37zXZ\0"sv, "xz"},
    Start{"\x04\x22\x4d\x18"sv, "lz4"},
    Start{"\xff\x06\0\0sNaPpY"sv, "snappy"},
    Start{"PK\x03\x04"sv, "zip"},
    Start{"7z\xbc\xaf\x27\x1c"sv, "7z"},
    Start{"PAR1"sv, "Parquet"},
    Start{"Obj\x01"sv, "Avro"},
    Start{"ARROW1\0\0"sv, "Arrow"},
    Start{"\x89HDF\r\n\x1a\n"sv, "HDF5"},
};

bool IsBzip2(std::string_view text) {
  return text.starts_with("BZh") && text.size() >= 10 && text[3] >= '1' && text[3] <= '9' &&
         text.substr(4).starts_with("1AY&SY");
}

}  // namespace

absl::Status CheckFileStart(std::string_view path, std::string_view beginning) {
  const auto starts = [beginning](const Start& start) {
    return beginning.starts_with(start.bytes);
  };
  if (const auto* const found = std::ranges::find_if(kEncodings, starts);
      found != kEncodings.end()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} begins with the byte-order mark of {}. Convert it to UTF-8 (iconv -t UTF-8)", path,
        found->what));
  }
  std::string_view format = IsBzip2(beginning) ? "bzip2" : "";
  if (const auto* const found = std::ranges::find_if(kFormats, starts); found != kFormats.end()) {
    format = found->what;
  }
  if (format.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} is a file of {}, but a dataset of files needs lines of plain text, because each worker "
      "reads a part of them. Unpack or convert it, or take it out of spec.datasets[].files",
      path, format));
}

std::string_view WithoutMark(std::string_view text) {
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  return text;
}

absl::StatusOr<std::string> HeaderOf(const ReadAt& read) {
  std::string header;
  for (size_t want = 4096;; want *= 16) {
    header.resize(want);
    MUSTER_ASSIGN_OR_RETURN(const size_t bytes, read(0, header));
    header.resize(std::min(bytes, header.find('\n')));
    if (header.size() < bytes || bytes < want || want >= kRecordBytesMax) break;
  }
  header = std::string(WithoutMark(header));
  if (header.ends_with('\r')) header.pop_back();
  return header;
}

uint64_t DigestOfHeader(std::string_view header) {
  return std::max<uint64_t>(XXH3_64bits(header.data(), header.size()), 1);
}

}  // namespace muster
