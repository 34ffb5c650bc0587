#include "cli/export/serve_export_command.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/strip.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/ask/export_command.h"
#include "cli/export/export_server.h"
#include "cli/export/export_socket.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "cli/state/stored_job.h"
#include "job/file/load_job.h"
#include "job/in_cluster.h"

namespace muster {
namespace {

using exporting::ExportRequest;
using exporting::ExportSocket;
using exporting::MadeExport;

constexpr std::chrono::minutes kIdleMax{2};
constexpr std::chrono::minutes kSilenceMax{5};
constexpr uint64_t kTokenBytesMax = 4096;

struct Served {
  std::string job_file;
  std::string state_directory;
  std::string folder;
  std::string token;
  OwnedFd listener;
};

std::string Or(const std::string& value, const char* otherwise) {
  return value.empty() ? otherwise : value;
}

absl::StatusOr<OwnedFd> ListenOnLoopback(uint16_t port) {
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd.get() < 0 || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd.get(), 1) != 0) {
    return absl::ErrnoToStatus(errno, fmt::format("127.0.0.1:{}", port));
  }
  return fd;
}

absl::StatusOr<Served> Prepare(const ServeExportOptions& options) {
  Served served{.job_file = Or(options.job_file, kInClusterJobFile),
                .state_directory = options.state_directory,
                .folder = Or(options.folder, kInClusterExports)};
  if (served.state_directory.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(served.job_file, ""));
    served.state_directory = fmt::format("{}/{}", kInClusterState, job.spec.name);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string token,
                          ReadFile(Or(options.token_file, kInClusterTokenFile), kTokenBytesMax));
  served.token = std::string(absl::StripSuffix(token, "\n"));
  MUSTER_ASSIGN_OR_RETURN(
      served.listener, ListenOnLoopback(options.port == 0 ? kInClusterExportPort : options.port));
  return served;
}

absl::StatusOr<v1::GetManifestResponse> ManifestFor(const ExportRequest& request,
                                                    const Served& served) {
  v1::GetManifestResponse manifest;
  if (!request.manifest.empty()) {
    if (manifest.ParseFromString(request.manifest)) return manifest;
    return absl::InvalidArgumentError("the request for an export has no usable manifest");
  }
  MUSTER_ASSIGN_OR_RETURN(const v1::GetManifestRequest which, ManifestRequestFor(request.epoch));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<AdminClient> stored,
                          OpenStoredJob({.state_directory = served.state_directory}));
  return stored->GetManifest(which);
}

absl::StatusOr<MadeExport> Make(const ExportRequest& request, const Served& served) {
  MUSTER_ASSIGN_OR_RETURN(const v1::GetManifestResponse manifest, ManifestFor(request, served));
  MadeExport made{.tables = ExportedTables(manifest)};
  std::string output = request.output;
  if (output.empty()) {
    made.folder = output = served.folder + "/export";
    std::error_code ignored;  // the client may be gone
    std::filesystem::remove_all(made.folder, ignored);
  }
  // The export takes the copy of the job file from a state directory. Here the folder of the job
  // file stands in for it, because the pod may have no state directory.
  const StateDirectory with_job_file(std::filesystem::path(served.job_file).parent_path().string());
  MUSTER_RETURN_IF_ERROR(WriteExportOf(manifest, with_job_file, output));
  return made;
}

/// Waits for the next client. kDeadlineExceeded if none came.
absl::StatusOr<ExportSocket> NextClient(const Served& served) {
  while (true) {
    pollfd fd{served.listener.get(), POLLIN, 0};
    const int ready = ::poll(&fd, 1, static_cast<int>(std::chrono::milliseconds(kIdleMax).count()));
    if (ready == 0) {
      return absl::DeadlineExceededError(
          fmt::format("nobody came for the export within {} minutes", kIdleMax.count()));
    }
    OwnedFd client(::accept4(served.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() >= 0) return ExportSocket(std::move(client), -1, kSilenceMax);
  }
}

}  // namespace

int ServeExportCommand(const ServeExportOptions& options) {
  const absl::StatusOr<Served> served = Prepare(options);
  if (!served.ok()) return PrintError(Message(served.status()), kExitUsage);
  while (true) {
    absl::StatusOr<ExportSocket> client = NextClient(*served);
    if (!client.ok()) return PrintError(Message(client.status()), kExitFailed);
    const absl::Status handed_out = exporting::ServeClient(
        &*client, served->token,
        [&](const ExportRequest& request) { return Make(request, *served); });
    if (handed_out.ok()) return kExitSucceeded;
    // The client got the same error, and may ask again.
    PrintNote(Message(handed_out));
  }
}

}  // namespace muster
