#include "base/digest/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace muster {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest;
  unsigned int length = 0;
  const int ok =
      ::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, ::EVP_sha256(), nullptr);
  MUSTER_CHECK_MSG(ok == 1 && length == digest.size(), "SHA-256 is not available in OpenSSL");
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace muster
