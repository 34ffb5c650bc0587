#include "cli/export/export_server.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/token_file.h"

namespace muster::exporting {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSentBytes = 1 << 20;

/// The files of an export. The sums come last, so a client that has them has everything.
absl::StatusOr<std::vector<ExportedFile>> FilesIn(const std::string& folder) {
  std::vector<ExportedFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    files.push_back({entry.path().filename().string(), entry.file_size(error)});
    if (error) break;
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  std::ranges::sort(files, {}, [](const ExportedFile& file) {
    return std::pair(file.name == kSumsName, file.name);
  });
  return files;
}

absl::Status SendFile(ExportSocket* client, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view rest = file.bytes();
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kSentBytes);
    MUSTER_RETURN_IF_ERROR(client->Send(piece));
    rest.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

struct Answered {
  ExportReply reply;
  std::string folder;
};

absl::StatusOr<Answered> Answer(const std::string& line, const std::string& token,
                                const MakeExport& make) {
  MUSTER_ASSIGN_OR_RETURN(const ExportRequest request, ParseRequest(line));
  if (!SameSecret(request.token, token)) {
    return absl::PermissionDeniedError("the request has not the token of the job");
  }
  MUSTER_ASSIGN_OR_RETURN(const MadeExport made, make(request));
  Answered answered{.reply = {.tables = made.tables}, .folder = made.folder};
  if (!made.folder.empty()) {
    MUSTER_ASSIGN_OR_RETURN(answered.reply.files, FilesIn(made.folder));
  }
  return answered;
}

}  // namespace

absl::Status ServeClient(ExportSocket* client, const std::string& token, const MakeExport& make) {
  MUSTER_RETURN_IF_ERROR(client->Send(std::string(kExportHello) + "\n"));
  MUSTER_ASSIGN_OR_RETURN(const std::string line, client->ReadLine());
  const absl::StatusOr<Answered> answered = Answer(line, token, make);
  if (!answered.ok()) {
    client->Send(TextOf(ExportReply{.status = answered.status()}) + "\n").IgnoreError();
    return answered.status();
  }
  MUSTER_RETURN_IF_ERROR(client->Send(TextOf(answered->reply) + "\n"));
  for (const ExportedFile& file : answered->reply.files) {
    MUSTER_RETURN_IF_ERROR(SendFile(client, answered->folder + "/" + file.name));
  }
  // It waits for the client, because bytes that are still in transit would be lost with the pod.
  return client->ReadLine().status();
}

}  // namespace muster::exporting
