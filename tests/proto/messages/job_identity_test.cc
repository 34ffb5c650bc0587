#include "proto/messages/job_identity.h"

#include <gmock/gmock.h>

#include <cctype>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr JobPeers kPeers{"this master", "worker-0"};
const JobIdentity kOurs{"a1", "flights"};

TEST(JobIdentity, TheSameIdIsTheSameJobWhateverItsNameAndAnotherIdIsNot) {
  for (const UnnamedJob unnamed : {UnnamedJob::kAccept, UnnamedJob::kRefuse}) {
    EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, kOurs, unnamed), IsOk());
    EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {"a1", ""}, unnamed), IsOk());
    EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {"b2", "flights"}, unnamed),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("this master belongs to job 'flights' (id a1)"),
                               HasSubstr("worker-0 to job 'flights' (id b2)"))));
    EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {"b2", ""}, unnamed),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker-0 to job id b2")));
    EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {"a", ""}, unnamed),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("job id a:")))
        << "a beginning is not the id";
  }
}

TEST(JobIdentity, WhoKnowsNoJobIsTakenWhereItMayAsk) {
  EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {}, UnnamedJob::kAccept), IsOk());
  EXPECT_THAT(CheckJobIdentity(kPeers, kOurs, {"", "flights"}, UnnamedJob::kRefuse),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("worker-0 does not say"), HasSubstr("same release"))));
}

TEST(JobIdentity, AMessageStaysShort) {
  const absl::Status status = CheckJobIdentity(
      kPeers, kOurs, {std::string(5'000, 'i'), std::string(5'000, 'n')}, UnnamedJob::kRefuse);
  EXPECT_LT(status.message().size(), 500u);
}

TEST(JobIdentity, AnIdFitsIntoHeadersAndFiles) {
  for (const char* good : {"", "memory", "0123456789abcdef0123456789abcdef", "A.b_c-9"}) {
    EXPECT_THAT(CheckJobId("--job-id", good), IsOk()) << good;
  }
  EXPECT_THAT(CheckJobId("--job-id", std::string(64, 'a')), IsOk());
  for (int c = 0; c < 256; ++c) {
    const std::string id(1, static_cast<char>(c));
    const bool good = c < 128 && (std::isalnum(c) != 0 || id == "." || id == "_" || id == "-");
    EXPECT_EQ(CheckJobId("--job-id", id).ok(), good) << c;
  }
  for (const std::string& bad : {std::string(65, 'a'), std::string("a b"), std::string("a\n")}) {
    EXPECT_THAT(CheckJobId("--job-id", bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--job-id: a job's id")))
        << bad;
  }
}

}  // namespace
}  // namespace muster
