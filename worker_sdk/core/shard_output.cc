#include "worker_sdk/core/shard_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "proto/exported/npy.h"

namespace muster::sdk {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

namespace {

constexpr size_t kSuffixMax = 15;

bool IsSuffix(std::string_view suffix) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return suffix.starts_with('.') && suffix.size() > 1 && suffix.size() <= 1 + kSuffixMax &&
         std::ranges::all_of(suffix.substr(1), allowed);
}

}  // namespace

std::optional<std::string> ShardOutput::Add(Kind kind, std::string_view bytes) {
  if (kind_ != Kind::kNone && kind_ != kind) {
    return "a shard's outputs are of one kind: bytes, rows of numbers, or columns";
  }
  if (bytes.size() > kBytesMax - data_.size()) {
    return fmt::format(
        "the outputs of a shard have more than {} MiB: give the dataset fewer minibatchesPerShard",
        kBytesMax >> 20);
  }
  kind_ = kind;
  data_ += bytes;
  return std::nullopt;
}

std::optional<std::string> ShardOutput::AddBytes(std::string_view bytes) {
  return Add(Kind::kBytes, bytes);
}

std::optional<std::string> ShardOutput::AddRows(std::span<const float> values, uint64_t columns) {
  if (columns == 0 || values.size() % columns != 0) {
    return fmt::format("{} numbers are no rows of {} columns", values.size(), columns);
  }
  if (kind_ == Kind::kRows && columns != columns_) {
    return fmt::format("rows of {} columns came after rows of {}", columns, columns_);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  std::optional<std::string> wrong = Add(Kind::kRows, bytes);
  if (!wrong.has_value()) columns_ = columns;
  return wrong;
}

std::optional<std::string> ShardOutput::AddPiece(std::string_view bytes,
                                                 const ObjectFormat& format) {
  if (!IsSuffix(format.suffix) || !format.join) {
    return fmt::format(
        "a format has a suffix, a dot and 1 to {} lower-case letters or digits, and a function "
        "that "
        "joins the pieces; the suffix is \"{}\"",
        kSuffixMax, format.suffix);
  }
  if (kind_ == Kind::kPieces && format.suffix != format_.suffix) {
    return fmt::format("outputs of format \"{}\" came after \"{}\"", format.suffix, format_.suffix);
  }
  std::optional<std::string> wrong = Add(Kind::kPieces, bytes);
  if (wrong.has_value()) return wrong;
  if (piece_ends_.empty()) format_ = format;
  piece_ends_.push_back(data_.size());
  return std::nullopt;
}

std::string ShardOutput::NameOf(std::string_view dataset, ShardIndex shard) const {
  std::string_view suffix = ".out";
  if (kind_ == Kind::kRows) suffix = ".npy";
  if (kind_ == Kind::kPieces) suffix = format_.suffix;
  return fmt::format("{}-{:08}{}", dataset, shard.value(), suffix);
}

absl::StatusOr<std::string> ShardOutput::Object() const {
  if (kind_ == Kind::kPieces) {
    std::vector<std::string_view> pieces;
    size_t begin = 0;
    for (const size_t end : piece_ends_) {
      pieces.push_back(std::string_view(data_).substr(begin, end - begin));
      begin = end;
    }
    return format_.join(pieces);
  }
  if (kind_ != Kind::kRows) return data_;
  const uint64_t rows = data_.size() / sizeof(float) / columns_;
  return EncodeNpyHeader({.dtype = kNpyFloat32, .shape = {rows, columns_}}) + data_;
}

}  // namespace muster::sdk
