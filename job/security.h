#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "job/job_spec.h"

namespace muster {

/// The addresses "host:port" at which processes of the job listen.
std::vector<std::string> ListenAddresses(const JobSpec& spec);

/// How the job's TCP connections are protected.
enum class Transport : uint8_t {
  kTls,
  /// No address can be reached from another machine.
  kPlainOnLoopback,
  /// Others can read and change everything. Each process that starts others must warn about this
  /// every time.
  kPlainAndInsecure,
};

/// Decides from spec.security and the addresses. The answer is the same for every connection of the
/// job, so two processes with the same job file agree.
Transport TransportOf(const JobSpec& spec);
Transport TransportOf(const SecuritySpec& security, const std::vector<std::string>& addresses);

/// True if TransportOf(spec) is kTls.
bool UsesTls(const JobSpec& spec);

}  // namespace muster
