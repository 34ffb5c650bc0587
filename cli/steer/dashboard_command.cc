#include "cli/steer/dashboard_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/status.h"
#include "cli/state/scaler_link.h"
#include "proto/fields/json.h"

namespace muster::steer {
namespace {

/// Writes a page that leads to the address. Other users can read the arguments of the browser's
/// process, but not this file. So only the file contains the token.
absl::StatusOr<std::string> WriteRedirect(const StateDirectory& state, const std::string& address) {
  const std::string path = state.run() + "/dashboard.html";
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(
      path,
      fmt::format("<!DOCTYPE html><meta charset=\"utf-8\"><title>Muster</title>"
                  "<meta http-equiv=\"refresh\" content=\"0; url={0}\"><a href=\"{0}\">The job's "
                  "page</a>\n",
                  address),
      FileAccess::kOwnerOnly));
  return path;
}

}  // namespace

int DashboardCommand(const DashboardOptions& options) {
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  // The error says what to do if no job runs there, its scaler is away, or its token cannot be
  // read.
  const absl::Status serves = FindScaler(options.query.target).status();
  if (!serves.ok()) return PrintError(Message(serves), kExitUnreachable);
  const std::string address = DashboardAddress(*state, AddressFor::kTerminal);
  PrintData(options.query.output == OutputFormat::kText ? address + "\n"
                                                        : JsonText({{"address", address}}) + "\n");
  if (!options.open) return kExitSucceeded;
  const absl::StatusOr<std::string> page = WriteRedirect(*state, address);
  if (!page.ok()) return PrintError(page.status());
  std::fflush(stdout);
  if (options.stays && ::fork() != 0) return kExitSucceeded;
  ::execlp("xdg-open", "xdg-open", page->c_str(), nullptr);
  const int code = PrintError(fmt::format("xdg-open cannot be started ({}): open the address by "
                                          "hand",
                                          std::strerror(errno)),
                              kExitFailed);
  // The child exits at once: threads and a tunnel belong to the parent, so the child must not end
  // them.
  if (options.stays) ::_exit(code);
  return code;
}

}  // namespace muster::steer
