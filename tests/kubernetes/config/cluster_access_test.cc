#include "kubernetes/config/cluster_access.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

TEST(ClusterAccess, ReadsUrls) {
  const struct {
    const char* url;
    const char* host;
    uint16_t port;
    const char* prefix;
    const char* again;
  } kCases[] = {
      {"https://10.0.0.1:6443", "10.0.0.1", 6443, "", "https://10.0.0.1:6443"},
      {"https://api.example.com", "api.example.com", 443, "", "https://api.example.com:443"},
      {"https://api.example.com/", "api.example.com", 443, "", "https://api.example.com:443"},
      {"https://[fd00::1]:6443/k8s/c1/", "fd00::1", 6443, "/k8s/c1",
       "https://[fd00::1]:6443/k8s/c1"},
  };
  for (const auto& one : kCases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const ClusterAccess access, ParseServerUrl(one.url));
    EXPECT_EQ(access.host, one.host);
    EXPECT_EQ(access.port, one.port);
    EXPECT_EQ(access.path_prefix, one.prefix);
    EXPECT_EQ(access.Url(), one.again);
  }
}

TEST(ClusterAccess, RefusesOtherUrls) {
  for (const char* url :
       {"", "http://10.0.0.1", "https://", "https://:6443", "https://a:0", "https://a:65536",
        "https://a:b", "https://user@a", "https://a b", "https://[fd00::1", "https://a/b?c",
        "https://[fd00::1]x", "https://a\r\nX: y"}) {
    EXPECT_THAT(ParseServerUrl(url), testing::StatusIs(absl::StatusCode::kInvalidArgument, _))
        << url;
  }
}

TEST(ClusterAccess, ReadsPem) {
  const testing::TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("ca"), "of the file"), testing::IsOk());
  EXPECT_EQ(*ReadPem({.path = folder.File("ca"), .text = ""}), "of the file");
  EXPECT_EQ(*ReadPem({.path = "", .text = "inline"}), "inline");
  EXPECT_EQ(*ReadPem({}), "");
  EXPECT_THAT(ReadPem({.path = folder.File("none"), .text = ""}),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

}  // namespace
}  // namespace muster::kubernetes
