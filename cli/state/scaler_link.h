#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/state/job_target.h"
#include "cli/state/state_directory.h"
#include "scaler/rest/client/rest_client.h"

/// How verbs reach the scaler of a job, with address and token from the state directory.
namespace muster {

/// NotFound if no job runs there. Unavailable if a job runs but its scaler cannot be asked, because
/// it does not serve at the moment or its token cannot be read. Both say what to do.
absl::StatusOr<scaler::rest::RestClient> FindScaler(
    const StateDirectory& state, std::chrono::milliseconds deadline = std::chrono::seconds(5));

/// The same for the job that `target` names.
absl::StatusOr<scaler::rest::RestClient> FindScaler(const JobTarget& target);

/// Who reads an address. A browser needs the token, but a log must not contain it.
enum class AddressFor : uint8_t { kTerminal, kLog };

/// What `muster run` shows when a scaler serves. For a terminal, it is
/// "http://127.0.0.1:20200/#token=..." (https under TLS). Otherwise, it has no token but says where
/// the token is. "" while no scaler serves.
std::string DashboardAddress(const StateDirectory& state, AddressFor reader);

}  // namespace muster
