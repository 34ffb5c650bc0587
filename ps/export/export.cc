#include "ps/export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/version.h"
#include "proto/exported/npy.h"
#include "ps/engine/initializer.h"
#include "ps/engine/optimizer.h"
#include "ps/engine/partition.h"
#include "ps/export/export_folder.h"
#include "ps/snapshot/snapshot.h"
#include "store/object_store.h"

namespace muster::ps {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

template <typename T>
std::string_view AsBytes(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

class Exporter {
 public:
  Exporter(const ExportOptions& options, std::string folder, ObjectStore* snapshots)
      : options_(options), folder_(std::move(folder)), snapshots_(snapshots) {}

  absl::StatusOr<ExportSummary> Run() {
    for (const TableSpec& table : options_.tables) outputs_[table.id].spec = &table;
    MUSTER_RETURN_IF_ERROR(
        ForEachImage([&](const PartitionImage& image) { return CollectKeys(image); }));
    for (auto& [id, output] : outputs_) MUSTER_RETURN_IF_ERROR(Begin(&output));
    MUSTER_FAILPOINT_OR_RETURN("export.before-rows");
    MUSTER_RETURN_IF_ERROR(
        ForEachImage([&](const PartitionImage& image) { return WriteRows(image); }));
    MUSTER_FAILPOINT_OR_RETURN("export.before-sync");
    return Finish();
  }

 private:
  struct Output {
    const TableSpec* spec = nullptr;
    std::vector<uint64_t> keys;  // of a sparse table; Begin sorts them
    uint64_t rows = 0;
    uint64_t data_offset = 0;       // where the values begin in their file
    uint64_t not_finite = 0;        // how many rows have a value that is NaN or infinite
    uint64_t first_not_finite = 0;  // the smallest key of such a row
    std::vector<std::string> files;
    bool sparse() const { return spec->shape.empty(); }
    std::string values_file() const { return spec->name + (sparse() ? ".values.npy" : ".npy"); }
    void Watch(uint64_t key, std::span<const float> values) {
      if (FirstNonFinite(values) == values.size()) return;
      first_not_finite = not_finite == 0 ? key : std::min(first_not_finite, key);
      ++not_finite;
    }
    std::string Warning() const {
      return fmt::format(
          "table '{}': {} that are NaN or infinite, first in {} {}. Training has diverged, and "
          "no job can start from these weights",
          spec->name, CountText(not_finite, "row has values", "rows have values"),
          sparse() ? "the row of key" : "block", first_not_finite);
    }
  };

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  absl::Status ForEachImage(absl::FunctionRef<absl::Status(const PartitionImage&)> visit) {
    for (uint32_t p = 0; p < options_.manifests.size(); ++p) {
      const Manifest& manifest = options_.manifests[p];
      MUSTER_ASSIGN_OR_RETURN(std::vector<PartitionImage> images,
                              ReadChain(snapshots_, PartitionId(p), manifest));
      // Partition merges the base and the deltas.
      Partition partition(PartitionId(p), options_.seed);
      MUSTER_RETURN_IF_ERROR(partition.Restore(manifest.number, images));
      images.clear();
      MUSTER_RETURN_IF_ERROR(visit(partition.Snapshot(SnapshotNumber(), SnapshotKind::kBase)));
    }
    return absl::OkStatus();
  }

  absl::Status CollectKeys(const PartitionImage& image) {
    for (const TableSpec& table : image.tables) {
      const auto found = outputs_.find(table.id);
      if (found == outputs_.end() || *found->second.spec != table) {
        return absl::DataLossError(fmt::format(
            "a snapshot has table {}, which does not belong to the job", ToString(table)));
      }
    }
    for (const RowImage& rows : image.rows) {
      Output& output = outputs_.at(rows.table);
      output.rows += rows.keys.size();
      if (!output.sparse()) continue;
      output.keys.insert(output.keys.end(), rows.keys.begin(), rows.keys.end());
    }
    return absl::OkStatus();
  }

  /// Writes everything that does not depend on the rows: keys, headers, and a dense tensor's
  /// initial values.
  absl::Status Begin(Output* output) {
    const TableSpec& spec = *output->spec;
    std::ranges::sort(output->keys);
    output->files = {output->values_file()};
    NpyHeader values{kNpyFloat32, spec.shape};
    if (output->sparse()) {
      const std::string keys_file = spec.name + ".keys.npy";
      output->files.insert(output->files.begin(), keys_file);
      MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(Path(keys_file)));
      const std::string header = EncodeNpyHeader({kNpyUint64, {output->keys.size()}});
      MUSTER_RETURN_IF_ERROR(file.WriteAt(0, header));
      MUSTER_RETURN_IF_ERROR(
          file.WriteAt(header.size(), AsBytes(std::span<const uint64_t>(output->keys))));
      values.shape = {output->keys.size(), spec.dim};
    }
    MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(Path(output->values_file())));
    const std::string header = EncodeNpyHeader(values);
    output->data_offset = header.size();
    MUSTER_RETURN_IF_ERROR(file.WriteAt(0, header));
    return output->sparse() ? absl::OkStatus() : WriteInitial(*output, &file);
  }

  absl::Status WriteInitial(const Output& output, OutputFile* file) {
    const TableSpec& spec = *output.spec;
    const uint64_t elements = ElementCount(spec);
    const uint64_t blocks = DenseBlockCount(spec);
    const uint64_t batch = std::max<uint64_t>(1, kBufferBytes / (spec.dim * sizeof(float)));
    std::vector<float> buffer;
    for (uint64_t begin = 0; begin < blocks; begin += batch) {
      const uint64_t end = std::min(blocks, begin + batch);
      buffer.resize((end - begin) * spec.dim);
      for (uint64_t block = begin; block < end; ++block) {
        InitialRow(spec, options_.seed, block,
                   std::span(buffer).subspan((block - begin) * spec.dim, spec.dim));
      }
      const uint64_t first = begin * spec.dim;
      const uint64_t count = std::min<uint64_t>(buffer.size(), elements - first);
      MUSTER_RETURN_IF_ERROR(file->WriteAt(output.data_offset + first * sizeof(float),
                                           AsBytes(std::span<const float>(buffer).first(count))));
    }
    return absl::OkStatus();
  }

  absl::Status WriteRows(const PartitionImage& image) {
    for (const RowImage& rows : image.rows) {
      Output& output = outputs_.at(rows.table);
      const uint32_t dim = output.spec->dim;
      const uint64_t elements = output.sparse() ? UINT64_MAX : ElementCount(*output.spec);
      MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(Path(output.values_file())));
      for (size_t i = 0; i < rows.keys.size(); ++i) {
        uint64_t row = rows.keys[i];
        if (output.sparse()) {
          row = static_cast<uint64_t>(std::ranges::lower_bound(output.keys, row) -
                                      output.keys.begin());
        }
        const std::span<const float> values =
            std::span<const float>(rows.rows).subspan(i * rows.floats_per_row, dim);
        const uint64_t count = std::min<uint64_t>(dim, elements - row * dim);
        output.Watch(rows.keys[i], values.first(count));
        MUSTER_RETURN_IF_ERROR(file.WriteAt(output.data_offset + row * dim * sizeof(float),
                                            AsBytes(values.first(count))));
      }
    }
    return absl::OkStatus();
  }

  std::string Description() const {
    DoneSeq cut(UINT64_MAX);
    for (const Manifest& manifest : options_.manifests) cut = std::min(cut, manifest.cut);
    nlohmann::ordered_json json;
    json["format"] = 1;
    json["software"] = fmt::format("muster {}", kVersion);
    json["job"] = options_.job;
    json["seed"] = options_.seed;
    json["partitions"] = options_.manifests.size();
    json["cut"] = options_.manifests.empty() ? 0 : cut.value();
    json["tables"] = nlohmann::ordered_json::array();
    for (const TableSpec& spec : options_.tables) {
      const Output& output = outputs_.at(spec.id);
      nlohmann::ordered_json table;
      table["name"] = spec.name;
      table["kind"] = output.sparse() ? "sparse" : "dense";
      table["dtype"] = "float32";
      if (output.sparse()) {
        table["dim"] = spec.dim;
        table["rows"] = output.rows;
      } else {
        table["shape"] = spec.shape;
      }
      table["rows_not_finite"] = output.not_finite;
      table["files"] = output.files;
      table["definition"] = ToString(spec);
      json["tables"].push_back(std::move(table));
    }
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  absl::StatusOr<ExportSummary> Finish() {
    ExportSummary summary;
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(Path("export.json"), Description()));
    std::vector<std::string> files{"export.json"};
    for (const auto& [id, output] : outputs_) {
      files.insert(files.end(), output.files.begin(), output.files.end());
      summary.rows += output.rows;
      if (output.not_finite > 0) summary.warnings.push_back(output.Warning());
    }
    MUSTER_RETURN_IF_ERROR(WriteSums(folder_, files, &summary));
    summary.tables = options_.tables.size();
    return summary;
  }

  const ExportOptions& options_;
  const std::string folder_;
  ObjectStore* const snapshots_;
  absl::flat_hash_map<TableId, Output> outputs_;
};

absl::Status CheckTables(const ExportOptions& options) {
  for (const TableSpec& table : options.tables) {
    // The table's name becomes the name of a file.
    if (table.name.empty() || table.name[0] == '.' || table.name.find('/') != std::string::npos ||
        table.dim == 0) {
      return absl::InvalidArgumentError(
          fmt::format("table {} cannot be exported: a file cannot have its name", ToString(table)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExportSummary> WriteExport(const ExportOptions& options) {
  return WriteWhole(options.output_directory,
                    [&](const std::string& folder) -> absl::StatusOr<ExportSummary> {
                      MUSTER_RETURN_IF_ERROR(CheckTables(options));
                      MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> snapshots,
                                              OpenStore(options.snapshot_directory));
                      return Exporter(options, folder, snapshots.get()).Run();
                    });
}

}  // namespace muster::ps
