#include "scaler/rest/access.h"

#include <gmock/gmock.h>

namespace muster::scaler::rest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "0123456789abcdef";

AccessControl Control() {
  AccessControl control(8080);
  control.SetToken(kToken);
  return control;
}

Request With(std::vector<std::pair<std::string, std::string>> headers) {
  return {.method = "GET", .target = "/", .headers = std::move(headers), .body = ""};
}

int StatusOf(const std::optional<Problem>& problem) {
  return problem ? problem->status : 200;
}

TEST(AccessTest, OnlyOurOwnNamesAreTakenForHost) {
  for (const std::string host :
       {"127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"}) {
    EXPECT_FALSE(Control().CheckHost(With({{"host", host}}))) << host;
  }
  for (const std::string host :
       {"", "127.0.0.1", "localhost", "127.0.0.1:80", "evil.example:8080", "localhost.evil:8080",
        "127.0.0.1:8080.evil", "127.0.0.1:8080@evil", "0.0.0.0:8080", "tunnel:8080"}) {
    EXPECT_EQ(StatusOf(Control().CheckHost(With({{"host", host}}))), 421) << host;
  }
  EXPECT_EQ(StatusOf(Control().CheckHost(With({}))), 421);
  EXPECT_EQ(
      StatusOf(Control().CheckHost(With({{"host", "localhost:8080"}, {"host", "localhost:8080"}}))),
      400);
}

TEST(AccessTest, AdvertisedHostsAreOurs) {
  const AccessControl control(8080, {"GPU-1.example", "fd00::1", "0.0.0.0"});
  for (const std::string host : {"gpu-1.example:8080", "[fd00::1]:8080", "localhost:8080"}) {
    EXPECT_FALSE(control.CheckHost(With({{"host", host}}))) << host;
  }
  for (const std::string host : {"gpu-2.example:8080", "gpu-1.example:80", "0.0.0.0:8080"}) {
    EXPECT_EQ(StatusOf(control.CheckHost(With({{"host", host}}))), 421) << host;
  }
}

TEST(AccessTest, WhoComesThroughAWrongTunnelLearnsWhichOneIsRight) {
  const auto words = [](bool tls) {
    return AccessControl(8080, {}, tls).CheckHost(With({{"host", "tunnel:9"}}))->detail;
  };
  EXPECT_THAT(words(false), HasSubstr("the same port on both ends"));
  EXPECT_THAT(words(true), AllOf(HasSubstr("localhost"), Not(HasSubstr("same port"))));
}

TEST(AccessTest, UnderTlsATunnelMayHaveAnyPort) {
  AccessControl control(8080, {}, true);
  control.SetToken(kToken);
  for (const std::string host : {"127.0.0.1:9", "localhost:65535", "[::1]:1"}) {
    EXPECT_FALSE(control.CheckHost(With({{"host", host}}))) << host;
  }
  for (const std::string host : {"127.0.0.1", "127.0.0.1:", "evil:9", "127.0.0.1:9@evil", ":9"}) {
    EXPECT_EQ(StatusOf(control.CheckHost(With({{"host", host}}))), 421) << host;
  }
  const auto act = [&](const std::string& host, const std::string& origin) {
    return StatusOf(control.CheckAccess(With({{"authorization", std::string("Bearer ") + kToken},
                                              {"host", host},
                                              {"origin", origin}}),
                                        RouteKind::kAct));
  };
  EXPECT_EQ(act("127.0.0.1:9", "https://127.0.0.1:9"), 200);
  // Another program of this machine may have another port.
  EXPECT_EQ(act("127.0.0.1:9", "https://127.0.0.1:10"), 403);
  EXPECT_EQ(act("127.0.0.1:9", "https://127.0.0.1:8080"), 403);
  EXPECT_EQ(act("127.0.0.1:9", "https://localhost:9"), 403);
  EXPECT_EQ(act("LOCALHOST:9", "https://localhost:9"), 200);
  EXPECT_EQ(act("127.0.0.1:9", "http://127.0.0.1:9"), 403);
}

TEST(AccessTest, TheTokenIsNeededForReadsAndActions) {
  const Request good = With({{"authorization", std::string("Bearer ") + kToken}});
  const Request lower = With({{"authorization", std::string("bearer ") + kToken}});
  for (const RouteKind kind : {RouteKind::kRead, RouteKind::kAct, RouteKind::kStream}) {
    EXPECT_FALSE(Control().CheckAccess(good, kind));
    EXPECT_FALSE(Control().CheckAccess(lower, kind));
    for (const std::string wrong :
         {"Bearer 0123456789abcdee", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
          "Bearer ", "Bearer", "", "0123456789abcdef", "Basic 0123456789abcdef"}) {
      EXPECT_EQ(StatusOf(Control().CheckAccess(With({{"authorization", wrong}}), kind)), 401)
          << wrong;
    }
    EXPECT_EQ(StatusOf(Control().CheckAccess(With({}), kind)), 401);
    const auto twice = With({good.headers[0], good.headers[0]});
    EXPECT_EQ(StatusOf(Control().CheckAccess(twice, kind)), 401);
  }
  EXPECT_FALSE(Control().CheckAccess(With({}), RouteKind::kOpen));
}

TEST(AccessTest, WithoutATokenNobodyIsLetIn) {
  const Request empty = With({{"authorization", "Bearer "}});
  EXPECT_EQ(StatusOf(AccessControl(1).CheckAccess(empty, RouteKind::kRead)), 401);
}

TEST(AccessTest, ActionsThatOtherSitesAskForAreRefused) {
  const auto act = [](std::vector<std::pair<std::string, std::string>> headers) {
    headers.emplace_back("authorization", std::string("Bearer ") + kToken);
    headers.emplace_back("host", "127.0.0.1:8080");
    return StatusOf(Control().CheckAccess(With(std::move(headers)), RouteKind::kAct));
  };
  EXPECT_EQ(act({}), 200);
  EXPECT_EQ(act({{"sec-fetch-site", "same-origin"}, {"origin", "http://localhost:8080"}}), 200);
  EXPECT_EQ(act({{"sec-fetch-site", "none"}}), 200);
  EXPECT_EQ(act({{"origin", "http://127.0.0.1:8080"}}), 200);
  for (const std::string site : {"cross-site", "same-site", "", "anything"}) {
    EXPECT_EQ(act({{"sec-fetch-site", site}}), 403) << site;
  }
  for (const std::string origin : {"null", "", "https://localhost:8080", "http://localhost",
                                   "http://evil.example", "http://localhost:8081"}) {
    EXPECT_EQ(act({{"origin", origin}}), 403) << origin;
  }
}

TEST(AccessTest, UnderTlsOurOwnPagesAreAtHttps) {
  AccessControl control(8080, {}, /*tls=*/true);
  control.SetToken(kToken);
  const auto act = [&control](const std::string& origin) {
    return StatusOf(control.CheckAccess(With({{"authorization", std::string("Bearer ") + kToken},
                                              {"host", "127.0.0.1:8080"},
                                              {"origin", origin}}),
                                        RouteKind::kAct));
  };
  EXPECT_EQ(act("https://localhost:8080"), 200);
  EXPECT_EQ(act("http://localhost:8080"), 403);
}

}  // namespace
}  // namespace muster::scaler::rest
