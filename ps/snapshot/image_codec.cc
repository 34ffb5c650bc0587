#include "ps/snapshot/image_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "base/status.h"
#include "base/words/limits.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "ps/engine/optimizer.h"

namespace muster::ps {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are stored as they lie in memory");

constexpr uint32_t kFormat = 1;
constexpr char kHeaderKey = 0, kTableKey = 1, kWindowKey = 2, kRowKey = 3;
constexpr uint32_t kDimMax = 1u << 20;
/// The sample of an image that decides if compression is worth the time.
constexpr size_t kRowsSampled = 64;

void AppendBig(std::string* out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}
uint64_t ReadBig(std::string_view in) {
  uint64_t value = 0;
  for (const char byte : in) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

/// The header's value as stored in the file.
struct Header {
  uint32_t format = kFormat;
  uint32_t partition = 0;
  uint64_t epoch = 0;
  uint64_t number = 0;
  uint64_t floor = 0;
  uint64_t rows = 0;
  uint64_t window_shards = 0;
  uint32_t tables = 0;
  uint32_t full = 0;
};
static_assert(sizeof(Header) == 56 && std::is_trivially_copyable_v<Header>);

std::string RowKey(TableId table, uint64_t key) {
  std::string text(1, kRowKey);
  AppendBig(&text, table.value(), 4);
  AppendBig(&text, key, 8);
  return text;
}

absl::Status EncodeRows(const RowImage& image, EntrySink sink) {
  std::vector<uint32_t> order(image.keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return image.keys[i]; });
  const size_t bytes = image.floats_per_row * sizeof(float);
  for (const uint32_t i : order) {
    const char* row = reinterpret_cast<const char*>(image.rows.data()) + i * bytes;
    MUSTER_RETURN_IF_ERROR(sink(RowKey(image.table, image.keys[i]), {row, bytes}));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToString(const SnapshotIdentity& identity) {
  return fmt::format("partition {}, owner epoch {}, snapshot {}", identity.partition.value(),
                     identity.epoch.value(), ToString(identity.number));
}

absl::Status EncodeImage(const SnapshotIdentity& identity, const PartitionImage& image,
                         EntrySink sink) {
  Header header;
  header.partition = identity.partition.value();
  header.epoch = identity.epoch.value();
  header.number = identity.number.value();
  header.floor = image.floor.value();
  for (const RowImage& rows : image.rows) header.rows += rows.keys.size();
  header.window_shards = image.window.size();
  header.tables = static_cast<uint32_t>(image.tables.size());
  header.full = image.kind == SnapshotKind::kBase ? 1 : 0;
  MUSTER_RETURN_IF_ERROR(sink(std::string_view(&kHeaderKey, 1),
                              {reinterpret_cast<const char*>(&header), sizeof(header)}));
  for (const TableSpec& table : image.tables) {
    std::string key(1, kTableKey);
    AppendBig(&key, table.id.value(), 4);
    MUSTER_RETURN_IF_ERROR(sink(key, fields::Encode(table)));
  }
  for (const WindowEntry& entry : image.window) {
    std::string key(1, kWindowKey);
    AppendBig(&key, entry.shard.dataset.value(), 4);
    AppendBig(&key, entry.shard.epoch.value(), 4);
    AppendBig(&key, entry.shard.index.value(), 8);
    MUSTER_RETURN_IF_ERROR(sink(key, {reinterpret_cast<const char*>(entry.minibatches.data()),
                                      entry.minibatches.size() * sizeof(uint64_t)}));
  }
  for (const RowImage& rows : image.rows) MUSTER_RETURN_IF_ERROR(EncodeRows(rows, sink));
  return absl::OkStatus();
}

bool HasManyRepeats(const PartitionImage& image) {
  size_t rows = 0;
  for (const RowImage& table : image.rows) rows += table.keys.size();
  const size_t step = std::max<size_t>(rows / kRowsSampled, 1);
  size_t floats = 0, repeats = 0;
  for (const RowImage& table : image.rows) {
    for (size_t i = 0; i < table.keys.size(); i += step) {
      const auto row =
          std::span(table.rows).subspan(i * table.floats_per_row, table.floats_per_row);
      floats += row.size();
      for (size_t f = 1; f < row.size(); ++f) {
        repeats += std::bit_cast<uint32_t>(row[f]) == std::bit_cast<uint32_t>(row[f - 1]) ? 1 : 0;
      }
    }
  }
  return floats > 0 && 4 * repeats >= floats;
}

absl::Status ImageDecoder::Add(std::string_view key, std::string_view value) {
  if (!has_header_) {
    if (key != std::string_view(&kHeaderKey, 1)) {
      return absl::DataLossError("it does not begin with a snapshot's header");
    }
    return AddHeader(value);
  }
  if (key.size() == 5 && key[0] == kTableKey) {
    return AddTable(static_cast<uint32_t>(ReadBig(key.substr(1))), value);
  }
  if (key.size() == 17 && key[0] == kWindowKey) return AddWindow(key, value);
  if (key.size() == 13 && key[0] == kRowKey) {
    return AddRow(static_cast<uint32_t>(ReadBig(key.substr(1, 4))), ReadBig(key.substr(5)), value);
  }
  return absl::DataLossError(fmt::format("an entry of unknown kind {} with a key of {} bytes",
                                         key.empty() ? -1 : int{key[0]}, key.size()));
}

absl::Status ImageDecoder::AddHeader(std::string_view value) {
  Header header;
  if (value.size() != sizeof(header)) {
    return absl::DataLossError(
        fmt::format("its header has {} bytes, not {}", value.size(), sizeof(header)));
  }
  std::memcpy(&header, value.data(), sizeof(header));
  if (header.format != kFormat) {
    return absl::DataLossError(
        fmt::format("it has format {}, but this program reads format {}; use the program that "
                    "wrote it",
                    header.format, kFormat));
  }
  if (header.tables > most::kTables) {
    return absl::DataLossError(fmt::format("its header says {} tables, more than the limit of {}",
                                           header.tables, most::kTables));
  }
  identity_ = {PartitionId(header.partition), OwnerEpoch(header.epoch),
               SnapshotNumber::FromValue(header.number)};
  image_.kind = header.full != 0 ? SnapshotKind::kBase : SnapshotKind::kDelta;
  image_.floor = LeaseToken::FromValue(header.floor);
  tables_ = header.tables;
  window_shards_ = header.window_shards;
  rows_ = header.rows;
  has_header_ = true;
  return absl::OkStatus();
}

absl::Status ImageDecoder::AddTable(uint32_t id, std::string_view value) {
  absl::StatusOr<TableSpec> table = fields::Decode<TableSpec>(value);
  if (!table.ok() || table->id.value() != id || table->dim == 0 || table->dim > kDimMax) {
    return absl::DataLossError(
        fmt::format("the definition of table {} is not valid: {}", id,
                    table.ok() ? ToString(*table) : std::string(Message(table.status()))));
  }
  image_.tables.push_back(*std::move(table));
  return absl::OkStatus();
}

absl::Status ImageDecoder::AddWindow(std::string_view key, std::string_view value) {
  const ShardId shard{DatasetId(static_cast<uint32_t>(ReadBig(key.substr(1, 4)))),
                      EpochIndex(static_cast<uint32_t>(ReadBig(key.substr(5, 4)))),
                      ShardIndex(ReadBig(key.substr(9)))};
  if (value.size() % sizeof(uint64_t) != 0 || value.size() * 8 > Window::kMinibatchesMax) {
    return absl::DataLossError(
        fmt::format("the window of shard {} has {} bytes", ToString(shard), value.size()));
  }
  WindowEntry entry{shard, std::vector<uint64_t>(value.size() / sizeof(uint64_t))};
  if (!value.empty()) std::memcpy(entry.minibatches.data(), value.data(), value.size());
  image_.window.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status ImageDecoder::AddRow(uint32_t table, uint64_t key, std::string_view value) {
  if (image_.rows.empty() || image_.rows.back().table.value() != table) {
    const auto spec = std::ranges::find(image_.tables, TableId(table), &TableSpec::id);
    if (spec == image_.tables.end()) {
      return absl::DataLossError(
          fmt::format("it has rows of table {}, but does not define it", table));
    }
    const uint32_t floats = spec->dim + SlotFloats(spec->optimizer, spec->dim);
    image_.rows.push_back(RowImage{TableId(table), floats, {}, {}});
  }
  RowImage& rows = image_.rows.back();
  if (value.size() != rows.floats_per_row * sizeof(float)) {
    return absl::DataLossError(fmt::format("row {} of table {} has {} bytes, not {}", key, table,
                                           value.size(), rows.floats_per_row * sizeof(float)));
  }
  const size_t at = rows.rows.size();
  rows.keys.push_back(key);
  rows.rows.resize(at + rows.floats_per_row);
  std::memcpy(rows.rows.data() + at, value.data(), value.size());
  ++rows_seen_;
  return absl::OkStatus();
}

absl::StatusOr<PartitionImage> ImageDecoder::Finish() {
  if (!has_header_) return absl::DataLossError("it is empty");
  if (image_.tables.size() != tables_ || image_.window.size() != window_shards_ ||
      rows_seen_ != rows_) {
    return absl::DataLossError(fmt::format(
        "its header says {} tables, {} shards and {} rows, but it has {}, {} and {}", tables_,
        window_shards_, rows_, image_.tables.size(), image_.window.size(), rows_seen_));
  }
  return std::move(image_);
}

}  // namespace muster::ps
