#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sharding/lines/source_pin.h"

/// What the beginning of a file says about its lines. Pure.
namespace muster {

/// So many bytes are enough for CheckFileStart.
inline constexpr size_t kFileStartBytes = 16;

/// kInvalidArgument if a file that begins so has no lines of plain text that can be read from any
/// offset: it is compressed, or in UTF-16 or UTF-32. The message says which, and what to do.
absl::Status CheckFileStart(std::string_view path, std::string_view beginning);

/// The text without the byte-order mark of UTF-8 at its beginning. Requires: it is the beginning of
/// a file.
std::string_view WithoutMark(std::string_view text);

/// The first line without its end and without a byte-order mark, read through `read`; cut off at
/// kRecordBytesMax. Errors are those of `read`.
absl::StatusOr<std::string> HeaderOf(const ReadAt& read);
/// A number by which headers are told apart; never 0.
uint64_t DigestOfHeader(std::string_view header);

}  // namespace muster
