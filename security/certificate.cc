#include "security/certificate.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/status.h"

namespace muster::security {
namespace {

constexpr int kSerialBits = 127;
constexpr int kVersion3 = 2;

time_t Seconds(WallTime time) {
  return static_cast<time_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

absl::StatusOr<WallTime> TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return OpensslError("read a time of a certificate");
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

std::string StringOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string AddressText(const std::string& bytes) {
  if (bytes.size() == 4) {
    return fmt::format("{}.{}.{}.{}", static_cast<uint8_t>(bytes[0]),
                       static_cast<uint8_t>(bytes[1]), static_cast<uint8_t>(bytes[2]),
                       static_cast<uint8_t>(bytes[3]));
  }
  std::string text;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    text += fmt::format("{}{:x}", i == 0 ? "" : ":",
                        static_cast<uint8_t>(bytes[i]) * 256 + static_cast<uint8_t>(bytes[i + 1]));
  }
  return text;
}

Names NamesOf(const X509* certificate) {
  return Names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
}

/// False if OpenSSL has no memory.
bool AddName(GENERAL_NAMES* names, int type, const std::string& text) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (name == nullptr) return false;
  if (type == GEN_IPADD) {
    GENERAL_NAME_set0_value(name, type, a2i_IPADDRESS(text.c_str()));
  } else {
    ASN1_IA5STRING* value = ASN1_IA5STRING_new();
    if (value != nullptr) ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
    GENERAL_NAME_set0_value(name, type, value);
  }
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

bool IsAddress(const std::string& host) {
  ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str());
  ASN1_OCTET_STRING_free(address);
  return address != nullptr;
}

absl::Status AddNames(const CertificateContents& contents, X509* certificate) {
  const Identity& identity = contents.identity;
  const Names names(GENERAL_NAMES_new());
  bool ok = names != nullptr && AddName(names.get(), GEN_URI, IdentityUri(identity)) &&
            AddName(names.get(), GEN_DNS, IdentityHost(identity.job_id, identity.role));
  for (const std::string& host : contents.hosts) {
    ok = ok && AddName(names.get(), IsAddress(host) ? GEN_IPADD : GEN_DNS, host);
  }
  if (!ok || X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0,
                               X509V3_ADD_APPEND) != 1) {
    return OpensslError("put names into a certificate");
  }
  return absl::OkStatus();
}

absl::Status AddExtensions(X509* certificate, X509* issuer,
                           const std::vector<std::pair<int, const char*>>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [id, value] : extensions) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
    const bool ok = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    if (!ok) return OpensslError(fmt::format("put '{}' into a certificate", value));
  }
  return absl::OkStatus();
}

absl::Status FillSubject(X509* certificate, std::string_view unit, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto add = [subject](const char* field, std::string_view text) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
  };
  if (add("O", "muster") && add("OU", unit) && add("CN", name)) return absl::OkStatus();
  return OpensslError("put a subject into a certificate");
}

/// Makes a certificate with everything except its issuer, extensions and signature.
absl::StatusOr<Certificate> Begin(Validity validity, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  BIGNUM* serial = BN_new();
  const bool ok =
      certificate != nullptr && serial != nullptr &&
      BN_rand(serial, kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
      BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate.get())) != nullptr &&
      X509_set_version(certificate.get(), kVersion3) == 1 &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), Seconds(validity.begin)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), Seconds(validity.end)) != nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1;
  BN_free(serial);
  if (!ok) return OpensslError("begin a certificate");
  return certificate;
}

}  // namespace

absl::Status Unfit(const std::string& path, std::string_view what) {
  return absl::FailedPreconditionError(fmt::format("{}: {}", path, what));
}

absl::StatusOr<Certificate> ParseCertificate(std::string_view pem) {
  const Bio bio = ReadingBio(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return OpensslError("read a certificate");
  return certificate;
}

absl::StatusOr<Key> ParseKey(std::string_view pem) {
  // Without a function that asks for a password, OpenSSL would ask at the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const Bio bio = ReadingBio(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) return OpensslError("read a key without a password");
  return key;
}

absl::StatusOr<std::string> CertificatePem(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), const_cast<X509*>(certificate)) != 1) {
    return OpensslError("write a certificate");
  }
  return TextOf(bio);
}

absl::StatusOr<std::string> KeyPem(const EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), const_cast<EVP_PKEY*>(key), nullptr, nullptr, 0, nullptr,
                               nullptr) != 1) {
    return OpensslError("write a key");
  }
  return TextOf(bio);
}

absl::StatusOr<Key> MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("make a key");
  return key;
}

absl::StatusOr<Validity> ValidityOf(const X509* certificate) {
  Validity validity;
  MUSTER_ASSIGN_OR_RETURN(validity.begin, TimeOf(X509_get0_notBefore(certificate)));
  MUSTER_ASSIGN_OR_RETURN(validity.end, TimeOf(X509_get0_notAfter(certificate)));
  return validity;
}

bool ExpiresSoon(const Validity& validity, WallTime now) {
  return validity.end - now <= (validity.end - validity.begin) / 3;
}

std::string TimeText(WallTime time) {
  const time_t seconds = Seconds(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

absl::StatusOr<Identity> IdentityOf(const X509* certificate) {
  const Names names = NamesOf(certificate);
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) uris.push_back(StringOf(name->d.uniformResourceIdentifier));
  }
  std::erase_if(uris, [](const std::string& uri) { return !uri.starts_with("muster:"); });
  if (uris.size() == 1) return ParseIdentityUri(uris.front());
  return absl::InvalidArgumentError(
      fmt::format("it has {} URIs of the form muster://JOB-ID/ROLE/NAME, but needs one",
                  uris.empty() ? "no" : "several"));
}

std::vector<std::string> HostsOf(const X509* certificate) {
  const Names names = NamesOf(certificate);
  std::vector<std::string> hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) hosts.push_back(StringOf(name->d.dNSName));
    if (name->type == GEN_IPADD) hosts.push_back(AddressText(StringOf(name->d.iPAddress)));
  }
  return hosts;
}

bool CoversHost(X509* certificate, const std::string& host) {
  if (IsAddress(host)) return X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
  return X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1;
}

absl::StatusOr<Certificate> MakeCertificate(const CertificateContents& contents, EVP_PKEY* key,
                                            X509* authority, EVP_PKEY* authority_key) {
  MUSTER_RETURN_IF_ERROR(CheckIdentity(contents.identity));
  MUSTER_ASSIGN_OR_RETURN(Certificate made, Begin(contents.validity, key));
  X509* const certificate = made.get();
  MUSTER_RETURN_IF_ERROR(
      FillSubject(certificate, RoleWord(contents.identity.role), contents.identity.name));
  X509_set_issuer_name(certificate, X509_get_subject_name(authority));
  MUSTER_RETURN_IF_ERROR(AddExtensions(certificate, authority,
                                       {{NID_basic_constraints, "critical,CA:FALSE"},
                                        {NID_key_usage, "critical,digitalSignature"},
                                        {NID_ext_key_usage, "serverAuth,clientAuth"},
                                        {NID_subject_key_identifier, "hash"},
                                        {NID_authority_key_identifier, "keyid"}}));
  MUSTER_RETURN_IF_ERROR(AddNames(contents, certificate));
  if (X509_sign(certificate, authority_key, EVP_sha256()) == 0) {
    return OpensslError("sign a certificate");
  }
  return made;
}

absl::StatusOr<Certificate> MakeAuthority(const std::string& job_id, Validity validity,
                                          EVP_PKEY* key) {
  MUSTER_RETURN_IF_ERROR(CheckIdentity({.job_id = job_id, .role = Role::kMaster, .name = "ca"}));
  MUSTER_ASSIGN_OR_RETURN(Certificate made, Begin(validity, key));
  X509* const certificate = made.get();
  MUSTER_RETURN_IF_ERROR(FillSubject(certificate, "job", job_id));
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  MUSTER_RETURN_IF_ERROR(AddExtensions(certificate, certificate,
                                       {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                        {NID_subject_key_identifier, "hash"}}));
  if (X509_sign(certificate, key, EVP_sha256()) == 0) return OpensslError("sign a certificate");
  return made;
}

std::string CommonName(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  return StringOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace muster::security
