#include "proto/rpc/metadata.h"

#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MetadataTest, WhatTheCallerHasSaid) {
  grpc::ServerContext server;
  grpc::testing::ServerContextTestSpouse spouse(&server);
  EXPECT_EQ(MetadataOf(server, "job"), "");
  spouse.AddClientMetadata("job", "flights");
  spouse.AddClientMetadata("job-id", "a1");
  EXPECT_EQ(MetadataOf(server, "job"), "flights");
  EXPECT_EQ(MetadataOf(server, "job-id"), "a1");
  EXPECT_EQ(MetadataOf(server, "jo"), "");
}

}  // namespace
}  // namespace muster
