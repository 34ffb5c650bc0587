#include "worker_sdk/core/shard_output.h"

#include <fmt/format.h>

#include <bit>

#include "proto/exported/npy.h"

namespace muster::sdk {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

std::optional<std::string> ShardOutput::Add(Kind kind, std::string_view bytes) {
  if (kind_ != Kind::kNone && kind_ != kind) {
    return "a shard's outputs are bytes or rows of numbers, not both";
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

std::string ShardOutput::NameOf(std::string_view dataset, ShardIndex shard) const {
  return fmt::format("{}-{:08}{}", dataset, shard.value(), kind_ == Kind::kRows ? ".npy" : ".out");
}

std::string ShardOutput::Object() const {
  if (kind_ != Kind::kRows) return data_;
  const uint64_t rows = data_.size() / sizeof(float) / columns_;
  return EncodeNpyHeader({.dtype = kNpyFloat32, .shape = {rows, columns_}}) + data_;
}

}  // namespace muster::sdk
