#include "cli/state/scaler_link.h"

#include "base/address.h"
#include "base/status.h"
#include "base/token_file.h"
#include "cli/show/output.h"

namespace muster {

absl::StatusOr<scaler::rest::RestClient> FindScaler(const StateDirectory& state,
                                                    std::chrono::milliseconds deadline) {
  const absl::StatusOr<RestAddress> address = state.ReadRestAddress();
  if (!address.ok()) {
    // If no job runs, the error says only that.
    MUSTER_RETURN_IF_ERROR(state.ReadEndpoint().status());
    return absl::UnavailableError(fmt::format(
        "the job runs, but its scaler cannot be reached: {}. `muster run` restarts the scaler, so "
        "try again in a few seconds; `muster logs scaler` shows its output",
        Message(address.status())));
  }
  absl::StatusOr<std::string> token = LoadToken(state.token());
  if (!token.ok()) {
    return absl::UnavailableError(fmt::format(
        "the scaler requires its token: {}. A running job makes the token, so try again",
        Message(token.status())));
  }
  scaler::rest::RestClientOptions options{
      .host = address->host,
      .port = address->port,
      .token = *std::move(token),
      .deadline = deadline,
      .on_slow = [] { PrintNote("waiting for the scaler's answer"); }};
  if (!address->certificates.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, state.ReadEndpoint());
    options.tls =
        ClientTls{.files = {.ca = CredentialFilesOf(address->certificates, Role::kOperator).ca,
                            .certificate = "",
                            .key = ""},
                  .job_id = endpoint.job.id,
                  .server = Role::kScaler};
  }
  return scaler::rest::RestClient(std::move(options));
}

absl::StatusOr<scaler::rest::RestClient> FindScaler(const JobTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(target));
  absl::StatusOr<scaler::rest::RestClient> client = FindScaler(state);
  if (!client.ok()) return SayWhereLooked(client.status(), target);
  return client;
}

std::string DashboardAddress(const StateDirectory& state, AddressFor reader) {
  const absl::StatusOr<RestAddress> address = state.ReadRestAddress();
  if (!address.ok()) return "";
  const std::string page = fmt::format("{}://{}/", address->certificates.empty() ? "http" : "https",
                                       JoinHostPort(address->advertise, address->port));
  if (reader == AddressFor::kLog) return fmt::format("{} (token: {})", page, state.token());
  const absl::StatusOr<std::string> token = LoadToken(state.token());
  if (!token.ok()) return fmt::format("{} (no token: {})", page, Message(token.status()));
  return fmt::format("{}#token={}", page, *token);
}

}  // namespace muster
