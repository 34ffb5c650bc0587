#include "cli/state/job_source.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

TEST(JobSourceTest, WhereNoJobEverRanNobodyAnswers) {
  const TempDir folder;
  const QueryOptions options{.target = {.job_file = "", .state_directory = folder.path()},
                             .master = "",
                             .output = OutputFormat::kText};
  EXPECT_THAT(FindJobSource(options).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder.path())));
  EXPECT_THAT(OpenStoredSource(options, absl::NotFoundError("no master is there")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no master is there")));
}

TEST(JobSourceTest, AMasterByItsAddressNeedsTheJobsToken) {
  const QueryOptions options{.target = {}, .master = "127.0.0.1:1", .output = OutputFormat::kText};
  EXPECT_THAT(ConnectToMaster(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
}

TEST(JobSourceTest, AMasterByItsAddressIsAskedWithTheTokenOfTheStateDirectory) {
  const TempDir folder;
  const QueryOptions options{.target = {.job_file = "", .state_directory = folder.path()},
                             .master = "127.0.0.1:1",
                             .output = OutputFormat::kText};
  EXPECT_THAT(ConnectToMaster(options).status(), IsOk()) << "it connects when it is asked";
}

}  // namespace
}  // namespace muster
