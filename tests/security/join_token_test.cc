#include "security/join_token.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(JoinToken, IsOfOneRoleAndOneJob) {
  const std::string token(64, 'a');
  const std::string worker = JoinToken(token, Role::kWorker);
  const std::string server = JoinToken(token, Role::kServer);
  EXPECT_EQ(worker.size(), 64u);
  EXPECT_NE(worker, server);
  EXPECT_NE(worker, token);
  EXPECT_EQ(JoinRoleOf(worker, token), Role::kWorker);
  EXPECT_EQ(JoinRoleOf(server, token), Role::kServer);
  EXPECT_EQ(JoinRoleOf(worker, std::string(64, 'b')), std::nullopt);
  EXPECT_EQ(JoinRoleOf(token, token), std::nullopt) << "the job's own token is more";
  EXPECT_EQ(JoinRoleOf("", token), std::nullopt);
}

}  // namespace
}  // namespace muster
