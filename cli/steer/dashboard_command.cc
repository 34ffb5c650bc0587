#include "cli/steer/dashboard_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "base/token_file.h"
#include "cli/state/scaler_link.h"

namespace muster::steer {

int DashboardCommand(const DashboardOptions& options) {
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  // Says what to do when no job runs there, or its scaler is away, or its token cannot be read.
  const absl::Status serves = FindScaler(*state).status();
  if (!serves.ok()) return PrintError(Message(serves), kExitUnreachable);
  const std::string address = DashboardAddress(*state, AddressFor::kTerminal);
  PrintData(options.query.output == OutputFormat::kText
                ? address + "\n"
                : nlohmann::json{{"address", address}}.dump() + "\n");
  if (!options.open) return kExitSucceeded;
  std::fflush(stdout);
  ::execlp("xdg-open", "xdg-open", address.c_str(), nullptr);
  return PrintError(fmt::format("xdg-open cannot be started ({}): open the address by hand",
                                std::strerror(errno)),
                    kExitFailed);
}

}  // namespace muster::steer
