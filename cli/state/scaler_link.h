#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/state/job_target.h"
#include "cli/state/state_directory.h"
#include "scaler/rest/client/rest_client.h"

/// How the verbs reach the scaler of a job: address and token from the state directory.
namespace muster {

/// NotFound if no job runs there. Unavailable if a job runs, but its scaler cannot be asked: it
/// does not serve at the moment, or its token cannot be read. Both say what to do.
absl::StatusOr<scaler::rest::RestClient> FindScaler(
    const StateDirectory& state, std::chrono::milliseconds deadline = std::chrono::seconds(5));

/// As above for the job that `target` names.
absl::StatusOr<scaler::rest::RestClient> FindScaler(const JobTarget& target);

/// The reader of an address. A browser needs the token; a log must not contain it.
enum class AddressFor : uint8_t { kTerminal, kLog };

/// What `muster run` shows once a scaler serves: "http://127.0.0.1:20200/#token=..." (https under
/// TLS) for a terminal, else without the token, and where it is. "" while none serves.
std::string DashboardAddress(const StateDirectory& state, AddressFor reader);

}  // namespace muster
