#include "ps/export/export_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "base/digest/sha256.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "proto/exported/sha256.h"
#include "store/names/place.h"
#include "store/object_store.h"

namespace muster::ps {
namespace {

namespace fs = std::filesystem;

using Writer = absl::FunctionRef<absl::StatusOr<ExportSummary>(const std::string& folder)>;

constexpr char kSumsFile[] = "SHA256SUMS";

absl::StatusOr<ExportSummary> WriteToFolder(const std::string& output_directory, Writer write) {
  std::error_code error;
  if (fs::exists(output_directory, error) && !fs::is_empty(output_directory, error)) {
    return absl::AlreadyExistsError(fmt::format(
        "{} exists already and is not an empty folder; name another folder, or remove it",
        output_directory));
  }
  const fs::path output = fs::path(output_directory + "/").lexically_normal().parent_path();
  const std::string temporary = fmt::format("{}.tmp.{}", output.string(), ::getpid());
  fs::remove_all(temporary, error);
  MUSTER_RETURN_IF_ERROR(MakeDirectory(temporary).status());
  absl::Cleanup remove = [&] {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  };
  MUSTER_ASSIGN_OR_RETURN(ExportSummary summary, write(temporary));
  MUSTER_RETURN_IF_ERROR(SyncPath(temporary));
  MUSTER_FAILPOINT_OR_RETURN("export.before-rename");
  MUSTER_RETURN_IF_ERROR(RenamePath(temporary, output.string()));
  std::move(remove).Cancel();
  MUSTER_FAILPOINT_OR_RETURN("export.after-rename");
  const std::string parent = output.parent_path().string();
  MUSTER_RETURN_IF_ERROR(SyncPath(parent.empty() ? "." : parent));
  return summary;
}

/// Writes to a local folder first, because the writer writes to a file at many places, and an
/// object can only be written as a whole.
absl::StatusOr<ExportSummary> WriteToStore(const std::string& place, Writer write) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store, OpenStore(place));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> there, store->List(""));
  if (!there.empty()) {
    return absl::AlreadyExistsError(
        fmt::format("{} has objects already, such as {}; name another prefix, or remove them",
                    store->place(), there.front()));
  }
  std::error_code error;
  MUSTER_ASSIGN_OR_RETURN(const fs::path folder,
                          MakePrivateFolder(TemporaryFolder(), "muster-export"));
  absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  const std::string local = (folder / "export").string();
  MUSTER_ASSIGN_OR_RETURN(const ExportSummary summary, WriteToFolder(local, write));
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(local, error)) {
    names.push_back(file.path().filename().string());
  }
  // The sums come last, so whoever sees them can read all files.
  std::ranges::sort(names, {}, [](const std::string& name) { return name == kSumsFile; });
  for (const std::string& name : names) {
    const absl::Status status = store->Publish(LocalFile::Kept(local + "/" + name), name);
    if (status.ok()) continue;
    for (const std::string& written : names) store->Delete(written).IgnoreError();
    return status;
  }
  return summary;
}

}  // namespace

absl::StatusOr<ExportSummary> WriteWhole(const std::string& output_directory, Writer write) {
  return IsS3Place(output_directory) ? WriteToStore(output_directory, write)
                                     : WriteToFolder(output_directory, write);
}

absl::Status WriteSums(const std::string& folder, const std::vector<std::string>& files,
                       ExportSummary* summary) {
  Sha256Sums sums;
  for (const std::string& name : files) {
    const std::string path = folder + "/" + name;
    MUSTER_RETURN_IF_ERROR(SyncPath(path));
    MUSTER_ASSIGN_OR_RETURN(sums[name], Sha256OfFile(path));
    std::error_code error;
    summary->bytes += fs::file_size(path, error);
  }
  const std::string text = FormatSums(sums);
  MUSTER_FAILPOINT_OR_RETURN("export.before-sums");
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(folder + "/" + kSumsFile, text));
  summary->hash = Sha256Hex(text);
  return absl::OkStatus();
}

}  // namespace muster::ps
