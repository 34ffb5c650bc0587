#include "scaler/rest/rest_service.h"

#include <gmock/gmock.h>

#include "tests/scaler/rest/fake_job_api.h"

namespace muster::scaler::rest {
namespace {

using ::testing::HasSubstr;

constexpr TimePoint kBegin{std::chrono::seconds(100)};
constexpr char kHost[] = "127.0.0.1:8080";

RestService MakeService(RestLimits limits = {}) {
  return RestService(
      8080, [] { return "secret"; }, limits,
      {{.path = "/", .content_type = "text/html", .bytes = "<html>"}}, kBegin);
}

Request MakeRequest(const std::string& method, const std::string& target, bool token = true,
                    const std::string& host = kHost) {
  Request request{.method = method, .target = target, .headers = {{"host", host}}, .body = ""};
  if (token) request.headers.emplace_back("authorization", "Bearer secret");
  return request;
}

/// The operation that is to be run, or the status of the answer.
std::string Admitted(RestService* service, const Request& request) {
  RateLimiter connection = service->NewConnection(kBegin);
  const auto admitted = service->Admit(request, &connection, kBegin);
  if (const auto* response = std::get_if<Response>(&admitted)) {
    return std::to_string(response->status);
  }
  return std::string(std::get<Call>(admitted).route->operation);
}

TEST(RestServiceTest, WhoMayHaveWhat) {
  RestService service = MakeService();
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/api/v1/job")), "getJob");
  EXPECT_EQ(Admitted(&service, MakeRequest("HEAD", "/api/v1/job")), "getJob");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/api/v1/job", /*token=*/false)), "401");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/metrics", /*token=*/false)), "401");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/openapi.json", /*token=*/false)), "401");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/healthz", /*token=*/false)), "health");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/", /*token=*/false)), "200");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/?a=b", /*token=*/false)), "200");
  EXPECT_EQ(Admitted(&service, MakeRequest("POST", "/", /*token=*/false)), "405");
  // What there is is not told either.
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/nothing", /*token=*/false)), "401");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/nothing")), "404");
  EXPECT_EQ(Admitted(&service, MakeRequest("POST", "/api/v1/job")), "405");
  EXPECT_EQ(Admitted(&service, MakeRequest("OPTIONS", "/api/v1/job")), "405");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/%zz")), "400");
  EXPECT_EQ(Admitted(&service, MakeRequest("GET", "/" + std::string(5000, 'a'))), "414");
}

TEST(RestServiceTest, ANewTokenReplacesTheOldOneWhileItServes) {
  std::string token = "secret";
  int reads = 0;
  const auto read = [&] {
    ++reads;
    return token;
  };
  RestService service(8080, read, {}, {}, kBegin);
  const auto ask = [&](const std::string& shown, std::chrono::milliseconds after) {
    Request request = MakeRequest("GET", "/api/v1/job", /*token=*/false);
    request.headers.emplace_back("authorization", "Bearer " + shown);
    RateLimiter connection = service.NewConnection(kBegin);
    return std::holds_alternative<Call>(service.Admit(request, &connection, kBegin + after));
  };
  using std::chrono::milliseconds;
  EXPECT_TRUE(ask("secret", milliseconds(0)));
  token = "another";
  EXPECT_TRUE(ask("secret", milliseconds(99)));
  EXPECT_EQ(reads, 1) << "who asks often does not keep the disk busy";
  EXPECT_FALSE(ask("secret", milliseconds(100)));
  EXPECT_TRUE(ask("another", milliseconds(100)));
  EXPECT_EQ(reads, 2);
  token = "";
  EXPECT_FALSE(ask("another", milliseconds(200)));
  EXPECT_FALSE(ask("", milliseconds(200))) << "no token is no password";
}

TEST(RestServiceTest, AnotherHostGetsNothingNotEvenThePage) {
  RestService service = MakeService();
  for (const std::string target : {"/", "/healthz", "/api/v1/job", "/nothing"}) {
    EXPECT_EQ(Admitted(&service, MakeRequest("GET", target, true, "evil.example:8080")), "421");
  }
}

TEST(RestServiceTest, AMethodThatIsNotAllowedSaysWhichAre) {
  RestService service = MakeService();
  RateLimiter connection = service.NewConnection(kBegin);
  const auto admitted = service.Admit(MakeRequest("DELETE", "/api/v1/job"), &connection, kBegin);
  const auto& response = std::get<Response>(admitted);
  EXPECT_EQ(response.headers.at(0), std::make_pair(std::string("Allow"), std::string("GET, HEAD")));
}

TEST(RestServiceTest, RatesAreLimitedPerConnectionAndWhoHasNoTokenStarvesNobody) {
  const Rate few{.per_second = 1, .burst = 2};
  const Rate many{.per_second = 1, .burst = 1000};
  RestService service =
      MakeService({.per_connection = few, .with_token = many, .without_token = {1, 5}});
  RateLimiter connection = service.NewConnection(kBegin);
  const Request good = MakeRequest("GET", "/api/v1/job");
  EXPECT_TRUE(std::holds_alternative<Call>(service.Admit(good, &connection, kBegin)));
  EXPECT_TRUE(std::holds_alternative<Call>(service.Admit(good, &connection, kBegin)));
  const auto refused = service.Admit(good, &connection, kBegin);
  const auto& response = std::get<Response>(refused);
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.at(0), std::make_pair(std::string("Retry-After"), std::string("1")));
  EXPECT_THAT(response.body, HasSubstr("this connection"));
  EXPECT_TRUE(std::holds_alternative<Call>(
      service.Admit(good, &connection, kBegin + std::chrono::seconds(1))));

  const Request stranger = MakeRequest("GET", "/api/v1/job", /*token=*/false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Admitted(&service, stranger), "401");
  EXPECT_EQ(Admitted(&service, stranger), "429");
  EXPECT_EQ(Admitted(&service, good), "getJob");
}

TEST(RestServiceTest, EveryAnswerIsProtected) {
  std::string all;
  for (const auto& [name, value] : SecurityHeaders()) {
    all += std::string(name) + ": " + std::string(value) + "\n";
  }
  EXPECT_THAT(all, HasSubstr("default-src 'self'"));
  EXPECT_THAT(all, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(all, HasSubstr("nosniff"));
  EXPECT_THAT(all, HasSubstr("no-store"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("Access-Control")));
}

}  // namespace
}  // namespace muster::scaler::rest
