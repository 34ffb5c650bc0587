#include "job/security.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(SecurityTest, TlsIsOnAsSoonAsAnyAddressIsNotLoopback) {
  EXPECT_EQ(TransportOf({}, {"127.0.0.1:0", "[::1]:7"}), Transport::kPlainOnLoopback);
  EXPECT_EQ(TransportOf({}, {"127.0.0.1:0", "10.0.0.1:7"}), Transport::kTls);
  EXPECT_EQ(TransportOf({}, {"0.0.0.0:0"}), Transport::kTls);
  EXPECT_EQ(TransportOf({}, {"[::]:0"}), Transport::kTls);
}

TEST(SecurityTest, AlwaysMeansLoopbackToo) {
  EXPECT_EQ(TransportOf({.tls = TlsUse::kAlways}, {"127.0.0.1:0"}), Transport::kTls);
}

TEST(SecurityTest, PlainTextElsewhereNeedsTheWord) {
  EXPECT_EQ(TransportOf({.insecure = true}, {"10.0.0.1:7"}), Transport::kPlainAndInsecure);
  EXPECT_EQ(TransportOf({.insecure = true}, {"127.0.0.1:7"}), Transport::kPlainOnLoopback);
}

TEST(SecurityTest, AJobListensWhereItsMasterListens) {
  JobSpec job;
  EXPECT_FALSE(UsesTls(job));
  job.master_address = "10.0.0.1:7070";
  EXPECT_TRUE(UsesTls(job));
}

}  // namespace
}  // namespace muster
