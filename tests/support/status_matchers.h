#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace muster::testing {

/// EXPECT_THAT(status_or_statusor, IsOk()).
MATCHER(IsOk, "is OK") {
  const absl::Status& status = status_internal::AsStatus(arg);
  if (!status.ok()) *result_listener << status.ToString();
  return status.ok();
}

/// EXPECT_THAT(status_or_statusor, StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0"))).
MATCHER_P2(StatusIs, code, message, "has a status of that code and message") {
  const absl::Status& status = status_internal::AsStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace muster::testing

/// Declares `target` and assigns the value of an absl::StatusOr, or fails the test with its status.
#define MUSTER_ASSERT_OK_AND_ASSIGN(target, expression) \
  MUSTER_ASSERT_OK_AND_ASSIGN_IMPL(MUSTER_CONCAT(muster_test_result_, __LINE__), target, expression)
#define MUSTER_ASSERT_OK_AND_ASSIGN_IMPL(result, target, expression) \
  auto result = (expression);                                        \
  ASSERT_TRUE(result.ok()) << result.status();                       \
  target = *std::move(result)
