#include "ps/export/export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/digest/sha256.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "base/version.h"
#include "proto/exported/npy.h"
#include "proto/exported/sha256.h"
#include "ps/engine/initializer.h"
#include "ps/engine/partition.h"
#include "ps/snapshot/snapshot.h"
#include "store/names/place.h"
#include "store/object_store.h"

namespace muster::ps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = 1 << 20;
constexpr char kSumsFile[] = "SHA256SUMS";

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
    std::vector<uint64_t> keys;  // of a sparse table; sorted by Begin
    uint64_t rows = 0;
    uint64_t data_offset = 0;  // of the values in their file
    std::vector<std::string> files;
    bool sparse() const { return spec->shape.empty(); }
    std::string values_file() const { return spec->name + (sparse() ? ".values.npy" : ".npy"); }
  };

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  absl::Status ForEachImage(absl::FunctionRef<absl::Status(const PartitionImage&)> visit) {
    for (uint32_t p = 0; p < options_.manifests.size(); ++p) {
      const Manifest& manifest = options_.manifests[p];
      MUSTER_ASSIGN_OR_RETURN(std::vector<PartitionImage> images,
                              ReadChain(snapshots_, PartitionId(p), manifest));
      // The partition itself merges base and deltas.
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

  /// Writes everything that does not depend on rows: keys, headers, and a dense tensor's initial
  /// values.
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
      const Output& output = outputs_.at(rows.table);
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
      table["files"] = output.files;
      table["definition"] = ToString(spec);
      json["tables"].push_back(std::move(table));
    }
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  absl::StatusOr<ExportSummary> Finish() {
    ExportSummary summary;
    Sha256Sums sums;
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(Path("export.json"), Description()));
    std::vector<std::string> files{"export.json"};
    for (const auto& [id, output] : outputs_) {
      files.insert(files.end(), output.files.begin(), output.files.end());
      summary.rows += output.rows;
    }
    for (const std::string& name : files) {
      MUSTER_RETURN_IF_ERROR(SyncPath(Path(name)));
      MUSTER_ASSIGN_OR_RETURN(sums[name], Sha256OfFile(Path(name)));
      std::error_code error;
      summary.bytes += fs::file_size(Path(name), error);
    }
    const std::string text = FormatSums(sums);
    MUSTER_FAILPOINT_OR_RETURN("export.before-sums");
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(Path(kSumsFile), text));
    summary.tables = options_.tables.size();
    summary.hash = Sha256Hex(text);
    return summary;
  }

  const ExportOptions& options_;
  const std::string folder_;
  ObjectStore* const snapshots_;
  absl::flat_hash_map<TableId, Output> outputs_;
};

absl::Status CheckOptions(const ExportOptions& options) {
  std::error_code error;
  if (fs::exists(options.output_directory, error) &&
      !fs::is_empty(options.output_directory, error)) {
    return absl::AlreadyExistsError(fmt::format(
        "{} exists already and is not an empty folder; name another folder, or remove it",
        options.output_directory));
  }
  for (const TableSpec& table : options.tables) {
    // The name becomes a file's name.
    if (table.name.empty() || table.name[0] == '.' || table.name.find('/') != std::string::npos ||
        table.dim == 0) {
      return absl::InvalidArgumentError(
          fmt::format("table {} cannot be exported: a file cannot have its name", ToString(table)));
    }
  }
  return absl::OkStatus();
}

/// Writes to a local folder first, because files are written at many places.
absl::StatusOr<ExportSummary> WriteToStore(const ExportOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                          OpenStore(options.output_directory));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> there, store->List(""));
  if (!there.empty()) {
    return absl::AlreadyExistsError(
        fmt::format("{} has objects already, such as {}; name another prefix, or remove them",
                    store->place(), there.front()));
  }
  std::error_code error;
  const fs::path folder =
      fs::temp_directory_path(error) / fmt::format("muster-export-{}", ::getpid());
  MUSTER_RETURN_IF_ERROR(MakeDirectories(folder.string()));
  absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  ExportOptions local = options;
  local.output_directory = (folder / "export").string();
  MUSTER_ASSIGN_OR_RETURN(const ExportSummary summary, WriteExport(local));
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(local.output_directory, error)) {
    names.push_back(file.path().filename().string());
  }
  // Who sees the sums can read all files.
  std::ranges::sort(names, {}, [](const std::string& name) { return name == kSumsFile; });
  for (const std::string& name : names) {
    const absl::Status status =
        store->Publish(LocalFile::Kept(local.output_directory + "/" + name), name);
    if (status.ok()) continue;
    for (const std::string& written : names) store->Delete(written).IgnoreError();
    return status;
  }
  return summary;
}

}  // namespace

absl::StatusOr<ExportSummary> WriteExport(const ExportOptions& options) {
  if (IsS3Place(options.output_directory)) return WriteToStore(options);
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  const fs::path output = fs::path(options.output_directory + "/").lexically_normal().parent_path();
  const std::string temporary = fmt::format("{}.tmp.{}", output.string(), ::getpid());
  std::error_code error;
  fs::remove_all(temporary, error);
  MUSTER_RETURN_IF_ERROR(MakeDirectory(temporary).status());
  absl::Cleanup remove = [&] {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  };
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> snapshots,
                          OpenStore(options.snapshot_directory));
  MUSTER_ASSIGN_OR_RETURN(ExportSummary summary,
                          Exporter(options, temporary, snapshots.get()).Run());
  MUSTER_RETURN_IF_ERROR(SyncPath(temporary));
  MUSTER_FAILPOINT_OR_RETURN("export.before-rename");
  MUSTER_RETURN_IF_ERROR(RenamePath(temporary, output.string()));
  std::move(remove).Cancel();
  MUSTER_FAILPOINT_OR_RETURN("export.after-rename");
  const std::string parent = output.parent_path().string();
  MUSTER_RETURN_IF_ERROR(SyncPath(parent.empty() ? "." : parent));
  return summary;
}

}  // namespace muster::ps
