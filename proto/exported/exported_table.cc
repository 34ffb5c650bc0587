#include "proto/exported/exported_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>
#include <utility>

#include "base/digest/sha256.h"
#include "base/status.h"
#include "proto/exported/sha256.h"

namespace muster {
namespace {

constexpr uint64_t kSumsBytesMax = 16 << 20;
constexpr char kSumsFile[] = "SHA256SUMS";

absl::StatusOr<std::string> ReadSums(const std::string& directory) {
  absl::StatusOr<std::string> text = ReadFile(directory + "/" + kSumsFile, kSumsBytesMax);
  if (!text.ok()) {
    return Annotate(text.status(),
                    fmt::format("{} is not a folder written by `muster export`", directory));
  }
  return text;
}

template <typename T>
std::span<const T> Data(const NpyArray& array) {
  return {reinterpret_cast<const T*>(array.data.data()), array.data.size() / sizeof(T)};
}

}  // namespace

std::span<const uint64_t> ExportedTable::keys() const {
  return keys_ ? Data<uint64_t>(keys_->npy) : std::span<const uint64_t>();
}

std::span<const float> ExportedTable::values() const {
  return Data<float>(values_.npy);
}

absl::StatusOr<ExportedTable::Array> ExportedTable::OpenArray(const TableSpec& table,
                                                              const std::string& name,
                                                              const std::string& sum,
                                                              const NpyHeader& expected) {
  const std::string path = table.warm_start_directory + "/" + name;
  MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (Sha256Hex(file.bytes()) != sum) {
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
        "{} has dtype {} and shape ({}), but table '{}', which starts from it, needs "
        "{} and ({}){}",
        path, npy->header.dtype, fmt::join(npy->header.shape, ", "), table.name, wanted.dtype,
        fmt::join(expected.shape, ", "), expected.shape[0] == 0 ? ", 0 = any" : ""));
  }
  return Array{std::move(file), *npy};
}

absl::Status ExportedTable::CheckContents(const TableSpec& table) const {
  const std::span<const float> floats = values();
  const auto bad =
      std::ranges::find_if_not(floats, [](float value) { return std::isfinite(value); });
  if (bad != floats.end()) {
    return absl::InvalidArgumentError(fmt::format("table '{}' cannot start from {}: value {} is {}",
                                                  table.name, table.warm_start_directory,
                                                  bad - floats.begin(), *bad));
  }
  if (!keys_) return absl::OkStatus();
  if (keys().size() * table.dim != floats.size() ||
      std::ranges::adjacent_find(keys(), std::greater_equal<>()) != keys().end()) {
    return absl::InvalidArgumentError(fmt::format(
        "table '{}' cannot start from {}: its {} keys are not ascending, or not as many "
        "as its rows",
        table.name, table.warm_start_directory, keys().size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExportedTable> ExportedTable::Open(const TableSpec& table) {
  const std::string& directory = table.warm_start_directory;
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSums(directory));
  std::string hash = Sha256Hex(text);
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
    return absl::FailedPreconditionError(fmt::format(
        "the export {} has no {} table '{}'; it has {}", directory, sparse ? "sparse" : "dense",
        table.name, fmt::join(std::views::keys(*sums), ", ")));
  }
  std::optional<Array> keys;
  if (sparse) {
    MUSTER_ASSIGN_OR_RETURN(keys,
                            OpenArray(table, keys_file, sums->at(keys_file), {kNpyUint64, {0}}));
  }
  NpyHeader expected{kNpyFloat32, table.shape};
  if (sparse) expected.shape = {0, table.dim};
  MUSTER_ASSIGN_OR_RETURN(Array values,
                          OpenArray(table, values_file, sums->at(values_file), expected));
  ExportedTable opened(std::move(hash), std::move(keys), std::move(values));
  MUSTER_RETURN_IF_ERROR(opened.CheckContents(table));
  return opened;
}

}  // namespace muster
