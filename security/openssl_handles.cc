#include "security/openssl_handles.h"

#include <openssl/err.h>

#include <array>

#include "base/status.h"

namespace muster::security {

absl::Status OpensslError(std::string_view what) {
  std::array<char, 256> text{"no reason given"};
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) ERR_error_string_n(error, text.data(), text.size());
  ERR_clear_error();
  return absl::InternalError(fmt::format("OpenSSL cannot {}: {}", what, text.data()));
}

Bio ReadingBio(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace muster::security
