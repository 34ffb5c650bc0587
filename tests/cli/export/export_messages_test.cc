#include "cli/export/export_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::exporting {
namespace {

using ::testing::HasSubstr;

TEST(ExportMessages, ARequestIsReadAsItWasWritten) {
  const ExportRequest request{
      .token = "t", .output = "s3://b/p", .epoch = "best", .manifest = std::string("\0\n\xff", 3)};
  const std::string line = TextOf(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(*ParseRequest(line), request);
  EXPECT_FALSE(ParseRequest("GET / HTTP/1.1").ok());
  EXPECT_FALSE(ParseRequest(R"({"manifest": "%"})").ok());
}

TEST(ExportMessages, AReplyHasFilesOrAnError) {
  const absl::StatusOr<ExportReply> files =
      ParseReply(TextOf(ExportReply{.tables = 2, .files = {{"a.npy", 7}, {kSumsName, 1}}}));
  ASSERT_THAT(files, testing::IsOk());
  EXPECT_TRUE(files->status.ok());
  EXPECT_EQ(files->tables, 2u);
  EXPECT_EQ(files->files, (std::vector<ExportedFile>{{"a.npy", 7}, {kSumsName, 1}}));
  const absl::StatusOr<ExportReply> error =
      ParseReply(TextOf(ExportReply{.status = absl::NotFoundError("line\nbreak \xff")}));
  ASSERT_THAT(error, testing::IsOk());
  EXPECT_THAT(error->status,
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("line\nbreak")));
}

TEST(ExportMessages, NoNameLeadsOutOfTheFolder) {
  for (const char* const name : {"", ".", "..", "../a", "/etc/passwd", "a/b", ".hidden"}) {
    const std::string line = TextOf(ExportReply{.files = {{name, 1}}});
    EXPECT_THAT(ParseReply(line), testing::StatusIs(absl::StatusCode::kDataLoss, ::testing::_))
        << name;
  }
  EXPECT_THAT(ParseReply("nothing"), testing::StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_THAT(ParseReply(R"({"code": 0, "tables": 0, "files": [{"name": "a"}]})"),
              testing::StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
}

}  // namespace
}  // namespace muster::exporting
