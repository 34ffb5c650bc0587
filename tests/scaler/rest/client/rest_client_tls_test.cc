#include "scaler/model/model_json.h"
#include "scaler/rest/client/rest_client.h"
#include "tests/scaler/rest/server/tls_fixture.h"

namespace muster::scaler::rest {
namespace {

using muster::testing::StatusIs;
using ::testing::HasSubstr;

class RestClientTlsTest : public testing::TlsFixture {
 protected:
  RestClient Client(const std::string& directory, const std::string& job_id = "ja") {
    return RestClient(
        {.port = port_,
         .token = testing::kToken,
         .tls = ClientTls{.files = {.ca = directory + "/ca.crt", .certificate = "", .key = ""},
                          .job_id = job_id,
                          .server = Role::kScaler},
         .deadline = std::chrono::seconds(60)});
  }
};

TEST_F(RestClientTlsTest, AsksWhoProvesToBeTheScaler) {
  StartTlsServer();
  MUSTER_ASSERT_OK_AND_ASSIGN(const Job job, Client(folder_.File("a")).GetJob());
  EXPECT_EQ(ToJson(job), ToJson(job_.GetJob().value()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Event event,
                              Client(folder_.File("a")).Give({RestartNode{.node = "ps-0"}, "why"}));
  EXPECT_EQ(event.because, "why");
}

TEST_F(RestClientTlsTest, TellsNobodyElseTheToken) {
  StartTlsServer();
  EXPECT_THAT(Client(Certificates("b")).GetJob().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another authority than ours")));
  EXPECT_THAT(Client(folder_.File("a"), "jb").GetJob().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("belongs to another job")));
}

TEST_F(RestClientTlsTest, AServerOfAnotherRoleIsNotTheScaler) {
  StartTlsServer(Options(), Role::kWorker);
  EXPECT_THAT(Client(folder_.File("a")).GetJob().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has the role worker")));
}

TEST_F(RestClientTlsTest, AServerOfPlainHttpIsNotAsked) {
  StartServer();
  EXPECT_THAT(Client(Certificates("a")).GetJob().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("speaks plain text")));
}

TEST_F(RestClientTlsTest, AMissingAuthorityIsNamed) {
  StartTlsServer();
  EXPECT_THAT(Client(folder_.File("none")).GetJob().status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/ca.crt")));
}

}  // namespace
}  // namespace muster::scaler::rest
