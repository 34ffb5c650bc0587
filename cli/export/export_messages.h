#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// What `muster export --on kubernetes` and the pod of its export say to each other: the pod says
/// kExportHello, the client a request, the pod a reply and then the bytes of its files, in order;
/// when the client has them, it says an empty line. Each message is one line. Pure, thread-safe
/// functions.
namespace muster::exporting {

inline constexpr std::string_view kExportHello = "muster-export 1";
/// The file with the sums of all others, which is the last one.
inline constexpr char kSumsName[] = "SHA256SUMS";

struct ExportRequest {
  /// The job's.
  std::string token;
  /// s3://bucket/prefix, which the pod writes itself; empty: the pod sends files.
  std::string output;
  /// Of ManifestRequestFor; used if there is no manifest.
  std::string epoch;
  /// A serialized v1::GetManifestResponse; empty: the pod reads it in the state directory.
  std::string manifest;
  friend bool operator==(const ExportRequest&, const ExportRequest&) = default;
};

struct ExportedFile {
  std::string name;
  uint64_t bytes = 0;
  friend bool operator==(const ExportedFile&, const ExportedFile&) = default;
};

struct ExportReply {
  /// If it is an error, nothing follows.
  absl::Status status;
  uint64_t tables = 0;
  std::vector<ExportedFile> files;
};

/// One line, without its end.
std::string TextOf(const ExportRequest& request);
std::string TextOf(const ExportReply& reply);
/// kInvalidArgument: it is something else.
absl::StatusOr<ExportRequest> ParseRequest(std::string_view line);
/// kDataLoss: it is something else, or a name in it is no plain name of a file.
absl::StatusOr<ExportReply> ParseReply(std::string_view line);

}  // namespace muster::exporting
