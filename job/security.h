#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "job/job_spec.h"

namespace muster {

/// The addresses "host:port" at which processes of the job listen.
std::vector<std::string> ListenAddresses(const JobSpec& spec);

/// How the job's connections over TCP are protected.
enum class Transport : uint8_t {
  kTls,
  /// No address can be reached from another machine.
  kPlainOnLoopback,
  /// Others can read and change everything. Whoever starts processes must say so every time.
  kPlainAndInsecure,
};

/// Decides it from spec.security and the addresses. The answer is the same for every connection of
/// the job: two processes that decide from the same job file agree.
Transport TransportOf(const JobSpec& spec);
Transport TransportOf(const SecuritySpec& security, const std::vector<std::string>& addresses);

/// TransportOf(spec) is kTls.
bool UsesTls(const JobSpec& spec);

}  // namespace muster
