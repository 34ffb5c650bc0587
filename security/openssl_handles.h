#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// OpenSSL's objects with owners. Each is freed by its own function.
namespace muster::security {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

/// Internal, with the newest text in OpenSSL's queue of errors. The queue is emptied.
absl::Status OpensslError(std::string_view what);

/// A memory BIO that reads `text`, which must outlive it.
Bio ReadingBio(std::string_view text);

/// The text that was written to a memory BIO.
std::string TextOf(const Bio& bio);

}  // namespace muster::security
