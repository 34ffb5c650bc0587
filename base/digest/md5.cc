#include "base/digest/md5.h"

#include <openssl/evp.h>

#include <array>

namespace muster {

std::string Md5Base64(std::string_view bytes) {
  constexpr size_t kDigestBytes = 16;
  constexpr size_t kTextBytes = (kDigestBytes + 2) / 3 * 4;
  std::array<unsigned char, kDigestBytes> digest;
  unsigned int length = 0;
  const int ok =
      ::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, ::EVP_md5(), nullptr);
  if (ok != 1 || length != digest.size()) return {};
  std::array<unsigned char, kTextBytes + 1> text;
  ::EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return std::string(text.begin(), text.begin() + kTextBytes);
}

}  // namespace muster
