#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// The messages between `muster export --on kubernetes` and the pod of its export. The pod sends
/// kExportHello, and the client a request. The pod then sends a reply and the bytes of its files,
/// in order. When the client has them, it sends an empty line. Each message is one line. Pure,
/// thread-safe functions.
namespace muster::exporting {

inline constexpr std::string_view kExportHello = "muster-export 1";
/// The file with the sums of all other files. It comes last.
inline constexpr char kSumsName[] = "SHA256SUMS";

struct ExportRequest {
  /// The job's token.
  std::string token;
  /// If s3://bucket/prefix, the pod writes the export there itself. If empty, the pod sends files.
  std::string output;
  /// See ManifestRequestFor. It is used if there is no manifest.
  std::string epoch;
  /// A serialized v1::GetManifestResponse. If empty, the pod reads it in the state directory.
  std::string manifest;
  friend bool operator==(const ExportRequest&, const ExportRequest&) = default;
};

struct ExportedFile {
  std::string name;
  uint64_t bytes = 0;
  friend bool operator==(const ExportedFile&, const ExportedFile&) = default;
};

struct ExportReply {
  /// If it is an error, no files follow.
  absl::Status status;
  uint64_t tables = 0;
  std::vector<ExportedFile> files;
};

/// One line, without its line break.
std::string TextOf(const ExportRequest& request);
std::string TextOf(const ExportReply& reply);
/// kInvalidArgument if the line is no request.
absl::StatusOr<ExportRequest> ParseRequest(std::string_view line);
/// kDataLoss if the line is no reply, or if it has a name that is not the plain name of a file.
absl::StatusOr<ExportReply> ParseReply(std::string_view line);

}  // namespace muster::exporting
