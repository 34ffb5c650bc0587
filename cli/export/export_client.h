#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/export/export_messages.h"
#include "cli/export/export_socket.h"

namespace muster::exporting {

/// OK if an export may be written to the folder: its parent exists, and the folder itself is
/// missing or empty. Otherwise kAlreadyExists or kNotFound.
absl::Status CheckOutputFolder(const std::string& folder);

/// Sends the request and writes the files of the reply to `folder`. If the request has an `output`,
/// it writes nothing. The files are checked against their sums. The folder appears complete or not
/// at all. Requires: the hello was read. Returns the number of tables. Errors: the one in the
/// reply; those of ExportSocket; kDataLoss for anything damaged.
absl::StatusOr<uint64_t> FetchExport(ExportSocket* socket, const ExportRequest& request,
                                     const std::string& folder);

}  // namespace muster::exporting
