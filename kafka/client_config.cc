#include "kafka/client_config.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/status.h"
#include "kafka/internal/client.h"

namespace muster::kafka {
namespace {

constexpr size_t kSecretBytesMax = 64 << 10;
constexpr std::string_view kEnv = "env:", kFile = "file:";

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string value(kSecretBytesMax + 1, '\0');
  file.read(value.data(), static_cast<std::streamsize>(value.size()));
  if (!file && file.gcount() == 0 && !file.eof()) {
    return absl::NotFoundError(fmt::format("cannot read the file {}", path));
  }
  value.resize(static_cast<size_t>(file.gcount()));
  while (value.ends_with('\n') || value.ends_with('\r')) value.pop_back();
  return value;
}

}  // namespace

absl::StatusOr<std::string> ReadSecret(std::string_view place) {
  std::string value;
  if (place.starts_with(kEnv)) {
    const std::string name(place.substr(kEnv.size()));
    const char* found = std::getenv(name.c_str());
    if (found == nullptr) {
      return absl::NotFoundError(fmt::format("the environment has no variable {}", name));
    }
    value = found;
  } else if (place.starts_with(kFile)) {
    MUSTER_ASSIGN_OR_RETURN(value, ReadSecretFile(std::string(place.substr(kFile.size()))));
  } else {
    return absl::InvalidArgumentError("the secret must be written as env:NAME or file:PATH");
  }
  if (value.size() > kSecretBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the secret is longer than {} bytes", kSecretBytesMax));
  }
  return value;
}

absl::Status CheckConfig(const ClientConfig& config) {
  // librdkafka checks some settings only when a client is created, so this creates one without
  // brokers, which does not connect.
  ClientConfig alone = config;
  alone.brokers.clear();
  return internal::Client::Open(RD_KAFKA_CONSUMER, alone, {}, {}).status();
}

}  // namespace muster::kafka
