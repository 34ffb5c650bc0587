#pragma once

#include <string>

namespace muster::testing {

/// PEM texts.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

/// An authority that signs certificates of tests.
class TestAuthority {
 public:
  TestAuthority();
  const std::string& certificate() const { return own_.certificate; }
  /// For the subject `name`, with `address` (an IP address or a DNS name) as its other name.
  CertificateAndKey Issue(const std::string& name, const std::string& address) const;

 private:
  CertificateAndKey own_;
};

}  // namespace muster::testing
