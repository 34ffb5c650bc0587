#include "security/identity.h"

#include <string>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(IdentityTest, BothFormsAreReadBackForEveryRole) {
  for (const Role role : kRoles) {
    const Identity identity{.job_id = "0a1b", .role = role, .name = "node-7"};
    EXPECT_THAT(CheckIdentity(identity), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const Identity read, ParseIdentityUri(IdentityUri(identity)));
    EXPECT_EQ(read, identity);
    MUSTER_ASSERT_OK_AND_ASSIGN(const JobRole host, ParseIdentityHost(IdentityHost("0a1b", role)));
    EXPECT_EQ(host, (JobRole{"0a1b", role}));
    EXPECT_EQ(ParseRole(RoleWord(role)), role);
  }
}

TEST(IdentityTest, TheFormsAreThoseThatCertificatesOfUsersHave) {
  EXPECT_EQ(IdentityUri({.job_id = "0a1b", .role = Role::kServer, .name = "ps"}),
            "muster://0a1b/ps/ps");
  EXPECT_EQ(IdentityHost("0a1b", Role::kMaster), "master.0a1b.muster.internal");
}

TEST(IdentityTest, NoOtherUriIsAnIdentity) {
  const std::string long_id(64, 'a');
  for (const std::string& uri :
       {std::string(), std::string("muster://"), std::string("muster://j"),
        std::string("muster://j/ps"), std::string("muster://j/ps/"), std::string("muster:///ps/x"),
        std::string("muster://j/root/x"), std::string("muster://j/ps/x/y"),
        std::string("muster://J/ps/x"), std::string("muster://j/ps/-x"),
        std::string("muster://j./ps/x"), std::string("https://j/ps/x"),
        std::string("muster://j/ps/x\0y", 17), "muster://" + long_id + "/ps/x"}) {
    EXPECT_THAT(ParseIdentityUri(uri),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not muster://")))
        << uri;
  }
  EXPECT_THAT(ParseIdentityUri("muster://" + long_id.substr(1) + "/ps/x"), IsOk());
}

TEST(IdentityTest, NoOtherHostIsAnIdentity) {
  for (const char* host :
       {"", "ps", ".muster.internal", "ps.muster.internal", "ps..muster.internal",
        "ps.j.muster.internal.", "ps.j.example.org", "root.j.muster.internal",
        "a.ps.j.muster.internal", "ps.j.k.muster.internal", "*.j.muster.internal"}) {
    EXPECT_THAT(ParseIdentityHost(host),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not ROLE.")))
        << host;
  }
}

TEST(IdentityTest, WhatCannotBeAHostNameIsRefusedBeforeACertificateIsMade) {
  EXPECT_THAT(CheckIdentity({.job_id = "a_b", .role = Role::kServer, .name = "ps"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the job's id 'a_b'")));
  EXPECT_THAT(CheckIdentity({.job_id = "ab", .role = Role::kServer, .name = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the name ''")));
}

}  // namespace
}  // namespace muster
