#include "kubernetes/model/api_error.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// Answers of a real API server (1.37.2).
constexpr char kRbac[] =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
    R"("message":"pods is forbidden: User \"system:serviceaccount:r:default\" cannot )"
    R"(list resource \"pods\" in API group \"\" in the namespace \"r\"",)"
    R"("reason":"Forbidden","details":{"kind":"pods"},"code":403})";
constexpr char kQuota[] =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
    R"("message":"pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: )"
    R"(pods=1, limited: pods=1","reason":"Forbidden","details":{"name":"b",)"
    R"("kind":"pods"},"code":403})";
constexpr char kEnding[] =
    R"({"kind":"Status","status":"Failure","message":"pods \"b\" is forbidden: unable )"
    R"(to create new content in namespace r because it is being terminated",)"
    R"("reason":"Forbidden","details":{"name":"b","kind":"pods",)"
    R"("causes":[{"reason":"NamespaceTerminating","message":"namespace r is being )"
    R"(terminated","field":"metadata.namespace"}]},"code":403})";
constexpr char kTooLarge[] =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
    R"("message":"pods \"a\" is forbidden: node didn't have enough allocatable resources: )"
    R"(cpu, requested: 100000, allocatable: 4000","reason":"Forbidden",)"
    R"("details":{"name":"a","kind":"pods"},"code":403})";
constexpr char kGoneStatus[] =
    R"json({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)json"
    R"json("message":"too old resource version: 1 (1224)","reason":"Expired","code":410})json";

std::string StatusOf(int code, const std::string& reason, const std::string& more = "") {
  return R"({"kind":"Status","status":"Failure","message":"words","reason":")" + reason +
         R"(","code":)" + std::to_string(code) + more + "}";
}

TEST(ApiError, Kinds) {
  const struct {
    int code;
    std::string body;
    ApiErrorKind kind;
    absl::StatusCode status;
  } kCases[] = {
      {404, StatusOf(404, "NotFound"), ApiErrorKind::kNotFound, absl::StatusCode::kNotFound},
      {409, StatusOf(409, "AlreadyExists"), ApiErrorKind::kAlreadyExists,
       absl::StatusCode::kAlreadyExists},
      {409, StatusOf(409, "Conflict"), ApiErrorKind::kConflict, absl::StatusCode::kAborted},
      {401, StatusOf(401, "Unauthorized"), ApiErrorKind::kUnauthorized,
       absl::StatusCode::kUnauthenticated},
      {403, kRbac, ApiErrorKind::kForbidden, absl::StatusCode::kPermissionDenied},
      {403, kQuota, ApiErrorKind::kQuotaExceeded, absl::StatusCode::kResourceExhausted},
      {403, kTooLarge, ApiErrorKind::kNodeTooSmall, absl::StatusCode::kFailedPrecondition},
      {403, kEnding, ApiErrorKind::kNamespaceEnding, absl::StatusCode::kFailedPrecondition},
      {429, StatusOf(429, "TooManyRequests"), ApiErrorKind::kTooManyRequests,
       absl::StatusCode::kResourceExhausted},
      // Inside a watch the answer is 200, and only the Status says what it is.
      {200, kGoneStatus, ApiErrorKind::kGone, absl::StatusCode::kOutOfRange},
      {422, StatusOf(422, "Invalid"), ApiErrorKind::kInvalid, absl::StatusCode::kInvalidArgument},
      {400, "bad", ApiErrorKind::kInvalid, absl::StatusCode::kInvalidArgument},
      {500, StatusOf(500, "InternalError"), ApiErrorKind::kUnavailable,
       absl::StatusCode::kUnavailable},
      {503, "apiserver is shutting down.", ApiErrorKind::kUnavailable,
       absl::StatusCode::kUnavailable},
      {504, "", ApiErrorKind::kUnavailable, absl::StatusCode::kUnavailable},
      {302, "<html>", ApiErrorKind::kOther, absl::StatusCode::kInternal},
      {501, "", ApiErrorKind::kOther, absl::StatusCode::kInternal},
  };
  for (const auto& one : kCases) {
    const ApiError error = ReadApiError(one.code, one.body, "");
    EXPECT_EQ(error.kind, one.kind) << one.code << " " << one.body;
    EXPECT_EQ(ToStatus(error).code(), one.status) << one.body;
    EXPECT_EQ(KindOf(ToStatus(error)), one.kind) << one.body;
  }
}

TEST(ApiError, NamesWhatRbacLacks) {
  const ApiError error = ReadApiError(403, kRbac, "");
  ASSERT_TRUE(error.missing.has_value());
  EXPECT_EQ(*error.missing, (MissingPermission{.verb = "list",
                                               .resource = "pods",
                                               .ns = "r",
                                               .user = "system:serviceaccount:r:default"}));
  EXPECT_THAT(Explain(error), HasSubstr("the verb \"list\" for the resource \"pods\""));
  EXPECT_FALSE(ReadApiError(403, kQuota, "").missing.has_value());
  const ApiError of_group = ReadApiError(
      403,
      R"({"kind":"Status","code":403,"message":"jobs.batch is forbidden: User \"u\" )"
      R"(cannot create resource \"jobs\" in API group \"batch\" at the cluster scope"})",
      "");
  ASSERT_TRUE(of_group.missing.has_value());
  EXPECT_EQ(of_group.missing->api_group, "batch");
  EXPECT_EQ(of_group.missing->ns, "");
  EXPECT_THAT(Explain(of_group), HasSubstr("the whole cluster"));
}

TEST(ApiError, AnAdmissionRuleIsNoMissingPermission) {
  const ApiError error = ReadApiError(
      403,
      R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods \"a\" is )"
      R"(forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"})",
      "");
  EXPECT_EQ(error.kind, ApiErrorKind::kForbidden);
  EXPECT_FALSE(error.missing.has_value());
  EXPECT_THAT(Explain(error), HasSubstr("violates PodSecurity"));
}

TEST(ApiError, RetryAfter) {
  EXPECT_EQ(ReadApiError(429, "", "3").retry_after, seconds(3));
  EXPECT_EQ(ReadApiError(
                429, StatusOf(429, "TooManyRequests", R"(,"details":{"retryAfterSeconds":5})"), "")
                .retry_after,
            seconds(5));
  EXPECT_EQ(ReadApiError(429, "", "").retry_after, std::nullopt);
  EXPECT_EQ(ReadApiError(429, "", "Fri, 31 Dec 1999 23:59:59 GMT").retry_after, std::nullopt);
  EXPECT_EQ(ReadApiError(429, "", "-3").retry_after, std::nullopt);
  EXPECT_EQ(ReadApiError(503, "", "99999999").retry_after, seconds(300));
  EXPECT_EQ(RetryAfterOf(ToStatus(ReadApiError(429, "", "3"))), seconds(3));
  EXPECT_EQ(RetryAfterOf(ToStatus(ReadApiError(429, "", ""))), std::nullopt);
}

TEST(ApiError, ForeignStatusesHaveNoKind) {
  EXPECT_EQ(KindOf(absl::NotFoundError("a file")), ApiErrorKind::kOther);
  EXPECT_EQ(RetryAfterOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(KindOf(ConnectionError("nobody listens")), ApiErrorKind::kUnavailable);
  EXPECT_THAT(ConnectionError("nobody listens"),
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody listens")));
}

TEST(ApiError, TextsOfTheServerAreBounded) {
  EXPECT_LT(Explain(ReadApiError(500, std::string(1 << 20, 'x'), "")).size(), 1'200u);
}

}  // namespace
}  // namespace muster::kubernetes
