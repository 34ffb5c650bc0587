#include "security/certificate.h"

#include "tests/support/status_matchers.h"

namespace muster::security {
namespace {

using ::muster::testing::StatusIs;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr WallTime kNow = hours(24 * 365 * 50);

struct Pair {
  Key key;
  Certificate certificate;
};

/// A certificate of job "j" with its authority's signature.
absl::StatusOr<Pair> Make(const CertificateContents& contents) {
  MUSTER_ASSIGN_OR_RETURN(const Key authority_key, MakeKey());
  MUSTER_ASSIGN_OR_RETURN(const Certificate authority,
                          MakeAuthority("j", {kNow, kNow + hours(2)}, authority_key.get()));
  MUSTER_ASSIGN_OR_RETURN(Key key, MakeKey());
  MUSTER_ASSIGN_OR_RETURN(
      Certificate certificate,
      MakeCertificate(contents, key.get(), authority.get(), authority_key.get()));
  return Pair{std::move(key), std::move(certificate)};
}

TEST(CertificateTest, SaysWhatItWasMadeWith) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Pair pair,
                              Make({.identity = {"j", Role::kScaler, "scaler"},
                                    .hosts = {"train-1.example.org", "10.0.0.1", "::1"},
                                    .validity = {kNow, kNow + hours(1)}}));
  X509* const certificate = pair.certificate.get();
  MUSTER_ASSERT_OK_AND_ASSIGN(const Identity identity, IdentityOf(certificate));
  EXPECT_EQ(identity, (Identity{"j", Role::kScaler, "scaler"}));
  EXPECT_THAT(HostsOf(certificate), ElementsAre("scaler.j.muster.internal", "train-1.example.org",
                                                "10.0.0.1", "0:0:0:0:0:0:0:1"));
  EXPECT_TRUE(CoversHost(certificate, "TRAIN-1.example.org"));
  EXPECT_TRUE(CoversHost(certificate, "::1"));
  EXPECT_FALSE(CoversHost(certificate, "train-2.example.org"));
  EXPECT_FALSE(CoversHost(certificate, "10.0.0.2"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Validity validity, ValidityOf(certificate));
  EXPECT_EQ(validity.begin, kNow);
  EXPECT_EQ(validity.end, kNow + hours(1));
  EXPECT_EQ(CommonName(certificate), "scaler");
}

TEST(CertificateTest, PemIsReadBack) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Pair pair, Make({.identity = {"j", Role::kWorker, "worker"},
                                                     .hosts = {},
                                                     .validity = {kNow, kNow + hours(1)}}));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string key_pem, KeyPem(pair.key.get()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Key key, ParseKey(key_pem));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string pem, CertificatePem(pair.certificate.get()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Certificate certificate, ParseCertificate(pem));
  EXPECT_EQ(X509_check_private_key(certificate.get(), key.get()), 1);
  EXPECT_THAT(ParseKey(pem), StatusIs(absl::StatusCode::kInternal, HasSubstr("read a key")));
  EXPECT_THAT(ParseCertificate(key_pem),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("read a certificate")));
}

TEST(CertificateTest, AnIdentityThatIsNoHostNameGetsNone) {
  EXPECT_THAT(
      Make({.identity = {"J", Role::kWorker, "worker"}, .hosts = {}, .validity = {}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'J'")));
}

TEST(CertificateTest, TheLastThirdOfALifeIsSoon) {
  const Validity validity{kNow, kNow + hours(90)};
  EXPECT_FALSE(ExpiresSoon(validity, kNow));
  EXPECT_FALSE(ExpiresSoon(validity, kNow + hours(59)));
  EXPECT_TRUE(ExpiresSoon(validity, kNow + hours(60)));
  EXPECT_TRUE(ExpiresSoon(validity, kNow + hours(91)));
}

TEST(CertificateTest, TimesAreForPeople) {
  EXPECT_EQ(TimeText(WallTime(0)), "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace muster::security
