#include "ps/export/group_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/checksum/crc32c.h"
#include "base/file.h"
#include "base/status.h"
#include "base/version.h"
#include "proto/exported/npy.h"
#include "ps/export/export_folder.h"
#include "store/object_store.h"

namespace muster::ps {
namespace {

struct Dtype {
  const char* name;  // the name in export.json
  const char* npy;
  uint64_t bytes;
};

absl::StatusOr<Dtype> DtypeOf(const GroupTensor& tensor) {
  switch (tensor.dtype) {
    case GroupDtype::kFloat32:
      return Dtype{"float32", kNpyFloat32, 4};
    case GroupDtype::kFloat64:
      return Dtype{"float64", "<f8", 8};
    case GroupDtype::kInt64:
      return Dtype{"int64", "<i8", 8};
    case GroupDtype::kBytes:
      return Dtype{"uint8", "|u1", 1};
    default:
      return absl::DataLossError(
          fmt::format("tensor '{}' of the group's state has the type of a sum", tensor.name));
  }
}

/// The name of the tensor's file. It is encoded, because trainers may give tensors any name.
std::string FileOf(std::string_view tensor) {
  std::string name;
  for (const char c : tensor) {
    const bool plain = static_cast<unsigned char>(c) > ' ' && c != '/' && c != '%' && c != '\x7f' &&
                       (c != '.' || !name.empty());
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name + ".npy";
}

class GroupExporter {
 public:
  GroupExporter(const GroupExportOptions& options, std::string folder, ObjectStore* store)
      : options_(options), folder_(std::move(folder)), store_(store) {}

  absl::StatusOr<ExportSummary> Run() {
    for (const GroupTensor& tensor : options_.tensors) MUSTER_RETURN_IF_ERROR(Begin(tensor));
    uint64_t stored = 0;
    for (const StateStripe& stripe : options_.stripes) stored += stripe.bytes;
    if (stored != bytes_) {
      return absl::DataLossError(
          fmt::format("the checkpoint of step {} has {} bytes, and the state of the model has {}",
                      options_.label.step.value(), stored, bytes_));
    }
    uint64_t begin = 0;
    for (const StateStripe& stripe : options_.stripes) {
      MUSTER_RETURN_IF_ERROR(WriteStripe(stripe, begin));
      begin += stripe.bytes;
    }
    return Finish();
  }

 private:
  struct Output {
    const GroupTensor* tensor;
    Dtype dtype;
    uint64_t begin;  // where its bytes begin in the state
    uint64_t bytes;
    uint64_t data_offset;  // where its bytes begin in its file
    OutputFile file;
  };

  absl::Status Begin(const GroupTensor& tensor) {
    MUSTER_ASSIGN_OR_RETURN(const Dtype dtype, DtypeOf(tensor));
    MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(folder_ + "/" + FileOf(tensor.name)));
    const std::string header = EncodeNpyHeader({dtype.npy, {tensor.elements}});
    MUSTER_RETURN_IF_ERROR(file.WriteAt(0, header));
    const uint64_t bytes = tensor.elements * dtype.bytes;
    outputs_.push_back({&tensor, dtype, bytes_, bytes, header.size(), std::move(file)});
    bytes_ += bytes;
    return absl::OkStatus();
  }

  /// `begin` is where the stripe begins in the state.
  absl::Status WriteStripe(const StateStripe& stripe, uint64_t begin) {
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, Read(stripe));
    for (Output& output : outputs_) {
      const uint64_t first = std::max(begin, output.begin);
      const uint64_t last = std::min(begin + bytes.size(), output.begin + output.bytes);
      if (first >= last) continue;
      MUSTER_RETURN_IF_ERROR(
          output.file.WriteAt(output.data_offset + (first - output.begin),
                              std::string_view(bytes).substr(first - begin, last - first)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(const StateStripe& stripe) const {
    MUSTER_ASSIGN_OR_RETURN(const LocalFile file, store_->Fetch(stripe.object));
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, ReadFile(file.path(), stripe.bytes));
    if (bytes.size() != stripe.bytes) {
      return absl::DataLossError(fmt::format("{} has {} bytes instead of {}",
                                             store_->Shown(stripe.object), bytes.size(),
                                             stripe.bytes));
    }
    if (Crc32c(std::as_bytes(std::span(bytes))) != stripe.crc) {
      return absl::DataLossError(
          fmt::format("{} is damaged: its checksum is wrong", store_->Shown(stripe.object)));
    }
    return bytes;
  }

  std::string Description() const {
    nlohmann::ordered_json json;
    json["format"] = 1;
    json["software"] = fmt::format("muster {}", kVersion);
    json["job"] = options_.job;
    json["seed"] = options_.seed;
    json["step"] = options_.label.step.value();
    json["tables"] = nlohmann::ordered_json::array();
    for (const Output& output : outputs_) {
      nlohmann::ordered_json table;
      table["name"] = output.tensor->name;
      table["kind"] = "dense";
      table["dtype"] = output.dtype.name;
      table["shape"] = {output.tensor->elements};
      table["files"] = {FileOf(output.tensor->name)};
      table["definition"] = "a part of the state of a synchronous group";
      json["tables"].push_back(std::move(table));
    }
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  absl::StatusOr<ExportSummary> Finish() {
    ExportSummary summary;
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(folder_ + "/export.json", Description()));
    std::vector<std::string> files{"export.json"};
    for (const Output& output : outputs_) files.push_back(FileOf(output.tensor->name));
    MUSTER_RETURN_IF_ERROR(WriteSums(folder_, files, &summary));
    summary.tables = outputs_.size();
    return summary;
  }

  const GroupExportOptions& options_;
  const std::string folder_;
  ObjectStore* const store_;
  std::vector<Output> outputs_;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<ExportSummary> WriteGroupExport(const GroupExportOptions& options) {
  return WriteWhole(options.output_directory,
                    [&](const std::string& folder) -> absl::StatusOr<ExportSummary> {
                      MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                                              OpenStore(options.snapshot_directory));
                      return GroupExporter(options, folder, store.get()).Run();
                    });
}

}  // namespace muster::ps
