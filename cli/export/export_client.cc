#include "cli/export/export_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/status.h"
#include "proto/exported/sha256.h"

namespace muster::exporting {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSumsBytesMax = 64 << 20;

/// "weights/" and "weights" are the same folder. The temporary folder is made beside it.
fs::path Normal(const std::string& folder) {
  return fs::path(folder + "/").lexically_normal().parent_path();
}

absl::Status ReceiveFile(ExportSocket* socket, const ExportedFile& file, const fs::path& path) {
  MUSTER_ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(path.string()));
  uint64_t written = 0;
  return socket->Read(file.bytes, [&](std::string_view piece) {
    const uint64_t at = written;
    written += piece.size();
    return output.WriteAt(at, piece);
  });
}

/// Checks every file against the sums in the last file, and that no file is missing.
absl::Status CheckSums(const std::vector<ExportedFile>& files, const fs::path& folder) {
  if (files.empty() || files.back().name != kSumsName) {
    return absl::DataLossError(fmt::format("the export came without {}", kSumsName));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile((folder / kSumsName).string(), kSumsBytesMax));
  MUSTER_ASSIGN_OR_RETURN(const Sha256Sums sums, ParseSums(text));
  if (sums.size() + 1 != files.size()) {
    return absl::DataLossError(fmt::format("{} files of the export came; {} names {}",
                                           files.size() - 1, kSumsName, sums.size()));
  }
  for (const auto& [name, sum] : sums) {
    MUSTER_ASSIGN_OR_RETURN(const std::string present, Sha256OfFile((folder / name).string()));
    if (present != sum) {
      return absl::DataLossError(fmt::format("{} was damaged on its way: export again", name));
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveFiles(ExportSocket* socket, const std::vector<ExportedFile>& files,
                          const fs::path& output) {
  const fs::path temporary = fmt::format("{}.tmp.{}", output.string(), ::getpid());
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  MUSTER_RETURN_IF_ERROR(MakeDirectory(temporary.string()).status());
  absl::Cleanup remove = [&] { fs::remove_all(temporary, ignored); };
  for (const ExportedFile& file : files) {
    MUSTER_RETURN_IF_ERROR(ReceiveFile(socket, file, temporary / file.name));
    MUSTER_RETURN_IF_ERROR(SyncPath((temporary / file.name).string()));
  }
  MUSTER_RETURN_IF_ERROR(CheckSums(files, temporary));
  MUSTER_RETURN_IF_ERROR(SyncPath(temporary.string()));
  MUSTER_RETURN_IF_ERROR(RenamePath(temporary.string(), output.string()));
  std::move(remove).Cancel();
  const std::string parent = output.parent_path().string();
  return SyncPath(parent.empty() ? "." : parent);
}

}  // namespace

absl::Status CheckOutputFolder(const std::string& folder) {
  const fs::path output = Normal(folder);
  std::error_code error;
  const bool is_there = fs::exists(fs::symlink_status(output, error));
  if (is_there && !(fs::is_directory(output, error) && fs::is_empty(output, error))) {
    return absl::AlreadyExistsError(
        fmt::format("{} is there already, and is no empty folder; name another one, or remove it",
                    output.string()));
  }
  const fs::path parent = output.parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error)) {
    return absl::NotFoundError(fmt::format("there is no folder {}", parent.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FetchExport(ExportSocket* socket, const ExportRequest& request,
                                     const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(socket->Send(TextOf(request) + "\n"));
  MUSTER_ASSIGN_OR_RETURN(const std::string line, socket->ReadLine());
  MUSTER_ASSIGN_OR_RETURN(const ExportReply reply, ParseReply(line));
  MUSTER_RETURN_IF_ERROR(reply.status);
  if (request.output.empty()) {
    MUSTER_RETURN_IF_ERROR(ReceiveFiles(socket, reply.files, Normal(folder)));
  }
  // This tells the pod that it may go. The pod does not wait for it for ever, so an error does not
  // matter.
  socket->Send("\n").IgnoreError();
  return reply.tables;
}

}  // namespace muster::exporting
