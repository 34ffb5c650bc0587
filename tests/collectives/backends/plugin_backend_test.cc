#include "collectives/backends/plugin_backend.h"

#include <gmock/gmock.h>

#include "tests/collectives/backends/signal.h"
#include "tests/support/status_matchers.h"

namespace muster::collectives {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;
using testing::Signal;

std::string Broken(int number) {
  return MUSTER_BROKEN_PLUGINS + std::to_string(number) + ".so";
}

TEST(PluginBackendTest, WhatIsNoPluginIsRefused) {
  EXPECT_THAT(OpenPlugin("libm.so.6"), StatusIs(absl::StatusCode::kUnimplemented,
                                                HasSubstr("has no muster_collective_plugin")));
  EXPECT_THAT(OpenPlugin(Broken(1)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("does not know version 1 of")));
  EXPECT_THAT(OpenPlugin(Broken(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lacks functions")));
  EXPECT_THAT(OpenPlugin(Broken(3)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has the name 'NCCL'")));
}

TEST(PluginBackendTest, ErrorsAreThePlugins) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Backend> backend, OpenPlugin(Broken(0)));
  EXPECT_EQ(backend->name(), "broken");
  EXPECT_THAT(backend->NewId(), StatusIs(absl::StatusCode::kInternal,
                                         "broken gave an id of 1025 bytes, not 1 to 1024"));
  const Signal signal;
  EXPECT_THAT(backend->Connect({}, {}, &signal),
              StatusIs(absl::StatusCode::kInternal, "broken does not connect the members: no"));
}

}  // namespace
}  // namespace muster::collectives
