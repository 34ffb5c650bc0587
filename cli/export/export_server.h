#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/export/export_messages.h"
#include "cli/export/export_socket.h"

namespace muster::exporting {

struct MadeExport {
  uint64_t tables = 0;
  /// The folder with the files to send; empty: there are none.
  std::string folder;
};
using MakeExport = std::function<absl::StatusOr<MadeExport>(const ExportRequest&)>;

/// Serves one client. If its request shows `token`, `make` is called and its result is sent. OK if
/// the client says that it has all of it. Otherwise the error that the client got, or the reason
/// why it got nothing.
absl::Status ServeClient(ExportSocket* client, const std::string& token, const MakeExport& make);

}  // namespace muster::exporting
