#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "ps/engine/initializer.h"
#include "ps/engine/optimizer.h"
#include "ps/export/export.h"
#include "ps/export/npy.h"
#include "ps/export/sha256.h"
#include "sharding/partition_map.h"

namespace muster::ps {
namespace {

constexpr uint64_t kSumsBytesMax = 16 << 20;
constexpr char kSumsFile[] = "SHA256SUMS";

struct Array {
  MappedFile file;
  NpyArray npy;
};

/// A mapped `.npy` file whose contents have the sum that the export lists.
absl::StatusOr<Array> OpenArray(const std::string& directory, const std::string& name,
                                const Sha256Sums& sums, const NpyHeader& expected) {
  const std::string path = directory + "/" + name;
  MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (Sha256Hex(file.bytes()) != sums.at(name)) {
    return absl::DataLossError(
        fmt::format("{} does not have the sum that {} lists: it was changed after the export; "
                    "export again or put the file back",
                    path, kSumsFile));
  }
  absl::StatusOr<NpyArray> npy = DecodeNpy(file.bytes());
  if (!npy.ok()) return Annotate(npy.status(), path);
  NpyHeader found = npy->header;
  // The number of rows is the export's; everything else is the table's.
  if (expected.shape.size() != found.shape.size() || expected.dtype != found.dtype) found = {};
  NpyHeader wanted = expected;
  if (!wanted.shape.empty() && !found.shape.empty() && wanted.shape[0] == 0) {
    wanted.shape[0] = found.shape[0];
  }
  if (found != wanted) {
    return absl::FailedPreconditionError(fmt::format(
        "{} has dtype {} and shape ({}), but the table that starts from it needs {} and ({}){}",
        path, npy->header.dtype, fmt::join(npy->header.shape, ", "), wanted.dtype,
        fmt::join(expected.shape, ", "), expected.shape[0] == 0 ? ", 0 = any" : ""));
  }
  return Array{std::move(file), *npy};
}

template <typename T>
std::span<const T> Data(const Array& array) {
  return {reinterpret_cast<const T*>(array.npy.data.data()), array.npy.data.size() / sizeof(T)};
}

/// Rows in mapped files, listed by partition.
class ExportRows final : public WarmStartSource {
 public:
  ExportRows(const TableSpec& table, uint32_t partition_count, std::optional<Array> keys,
             Array values)
      : dim_(table.dim), keys_(std::move(keys)), values_(std::move(values)) {
    const uint64_t rows = keys_ ? Data<uint64_t>(*keys_).size() : DenseBlockCount(table);
    // A counting sort by partition.
    begin_.assign(partition_count + 1, 0);
    std::vector<uint32_t> partitions(rows);
    for (uint64_t row = 0; row < rows; ++row) {
      partitions[row] = PartitionOf(table.id, Key(row), partition_count).value();
      ++begin_[partitions[row] + 1];
    }
    for (uint32_t p = 0; p < partition_count; ++p) begin_[p + 1] += begin_[p];
    rows_.resize(rows);
    std::vector<uint64_t> next(begin_.begin(), begin_.end() - 1);
    for (uint64_t row = 0; row < rows; ++row) rows_[next[partitions[row]]++] = row;
  }

  void ForEachRow(PartitionId partition,
                  absl::FunctionRef<void(uint64_t, std::span<const float>)> visit) const override {
    const std::span<const float> values = Data<float>(values_);
    std::vector<float> last(dim_);
    if (partition.value() + 1 >= begin_.size()) return;
    for (uint64_t i = begin_[partition.value()]; i < begin_[partition.value() + 1]; ++i) {
      const uint64_t row = rows_[i];
      const std::span<const float> rest = values.subspan(row * dim_);
      if (rest.size() >= dim_) {
        visit(Key(row), rest.first(dim_));
      } else {  // the last block of a tensor, with its padding
        std::ranges::fill(last, 0.0f);
        std::ranges::copy(rest, last.begin());
        visit(Key(row), last);
      }
    }
  }

 private:
  uint64_t Key(uint64_t row) const { return keys_ ? Data<uint64_t>(*keys_)[row] : row; }

  const uint32_t dim_;
  const std::optional<Array> keys_;  // of a sparse table
  const Array values_;
  std::vector<uint64_t> begin_;  // by partition, into rows_
  std::vector<uint64_t> rows_;
};

absl::Status CheckContents(const std::string& directory, const TableSpec& table,
                           const std::optional<Array>& keys, const Array& values) {
  const std::span<const float> floats = Data<float>(values);
  if (const size_t bad = FirstNonFinite(floats); bad != floats.size()) {
    return absl::InvalidArgumentError(fmt::format("table '{}' cannot start from {}: value {} is {}",
                                                  table.name, directory, bad, floats[bad]));
  }
  if (!keys) return absl::OkStatus();
  const std::span<const uint64_t> all = Data<uint64_t>(*keys);
  if (all.size() * table.dim != floats.size() ||
      std::ranges::adjacent_find(all, std::greater_equal<>()) != all.end()) {
    return absl::InvalidArgumentError(fmt::format(
        "table '{}' cannot start from {}: its {} keys are not ascending, or not as many "
        "as its rows",
        table.name, directory, all.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSums(const std::string& directory) {
  absl::StatusOr<std::string> text = ReadFile(directory + "/" + kSumsFile, kSumsBytesMax);
  if (!text.ok()) {
    return Annotate(text.status(),
                    fmt::format("{} is not a folder written by `muster export`", directory));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExportHash(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSums(directory));
  MUSTER_RETURN_IF_ERROR_PREPEND(ParseSums(text).status(), directory + "/" + kSumsFile);
  return Sha256Hex(text);
}

absl::StatusOr<std::shared_ptr<const WarmStartSource>> LoadWarmStart(const TableSpec& table,
                                                                     uint32_t partition_count) {
  const std::string& directory = table.warm_start_directory;
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSums(directory));
  const std::string hash = Sha256Hex(text);
  if (!table.warm_start_hash.empty() && table.warm_start_hash != hash) {
    return absl::FailedPreconditionError(
        fmt::format("{} is another export than the one that table '{}' started from (hash {}, not "
                    "{}): put that one back",
                    directory, table.name, hash, table.warm_start_hash));
  }
  absl::StatusOr<Sha256Sums> sums = ParseSums(text);
  if (!sums.ok()) return Annotate(sums.status(), directory + "/" + kSumsFile);
  const bool sparse = table.shape.empty();
  const std::string values_file = table.name + (sparse ? ".values.npy" : ".npy");
  const std::string keys_file = table.name + ".keys.npy";
  if (!sums->contains(values_file) || (sparse && !sums->contains(keys_file))) {
    return absl::NotFoundError(fmt::format("the export {} has no {} table '{}'; it has {}",
                                           directory, sparse ? "sparse" : "dense", table.name,
                                           fmt::join(std::views::keys(*sums), ", ")));
  }
  std::optional<Array> keys;
  if (sparse) {
    MUSTER_ASSIGN_OR_RETURN(keys, OpenArray(directory, keys_file, *sums, {kNpyUint64, {0}}));
  }
  NpyHeader expected{kNpyFloat32, table.shape};
  if (sparse) expected.shape = {0, table.dim};
  MUSTER_ASSIGN_OR_RETURN(Array values, OpenArray(directory, values_file, *sums, expected));
  MUSTER_RETURN_IF_ERROR(CheckContents(directory, table, keys, values));
  return std::make_shared<const ExportRows>(table, partition_count, std::move(keys),
                                            std::move(values));
}

}  // namespace muster::ps
