#include "tests/kubernetes/client/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/check.h"

namespace muster::testing {
namespace {

template <auto Free>
struct Freeing {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using OwnedBio = std::unique_ptr<BIO, Freeing<&BIO_free_all>>;
using OwnedKey = std::unique_ptr<EVP_PKEY, Freeing<&EVP_PKEY_free>>;
using OwnedCertificate = std::unique_ptr<X509, Freeing<&X509_free>>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  MUSTER_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

/// `issuer` null: signed by itself.
CertificateAndKey Make(const std::string& name, const std::string& other_name,
                       const CertificateAndKey* issuer) {
  const OwnedKey key(EVP_EC_gen("P-256"));
  const OwnedCertificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  static int serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  OwnedCertificate issuer_certificate;
  OwnedKey issuer_key;
  if (issuer != nullptr) {
    const OwnedBio text(BIO_new_mem_buf(issuer->certificate.data(), -1));
    issuer_certificate.reset(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    const OwnedBio key_text(BIO_new_mem_buf(issuer->key.data(), -1));
    issuer_key.reset(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  }
  X509* by = issuer != nullptr ? issuer_certificate.get() : certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(by));
  if (issuer == nullptr) AddExtension(certificate.get(), by, NID_basic_constraints, "CA:TRUE");
  if (!other_name.empty()) {
    AddExtension(certificate.get(), by, NID_subject_alt_name, other_name);
  }
  X509_sign(certificate.get(), issuer != nullptr ? issuer_key.get() : key.get(), EVP_sha256());
  const OwnedBio out(BIO_new(BIO_s_mem()));
  const OwnedBio out_key(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  PEM_write_bio_PrivateKey(out_key.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {.certificate = TextOf(out.get()), .key = TextOf(out_key.get())};
}

}  // namespace

TestAuthority::TestAuthority() : own_(Make("test authority", "", nullptr)) {}

CertificateAndKey TestAuthority::Issue(const std::string& name, const std::string& address) const {
  const bool is_address = address.find_first_not_of("0123456789.:") == std::string::npos;
  return Make(name, (is_address ? "IP:" : "DNS:") + address, &own_);
}

}  // namespace muster::testing
