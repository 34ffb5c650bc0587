#include "ps/snapshot/sst_file.h"

#include <fmt/format.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

TEST(SstFileTest, EntriesComeBackInOrder) {
  TempDir dir;
  ASSERT_THAT(
      WriteSst(dir.File("a.sst"),
               [](PutEntry put) {
                 for (int i = 0; i < 5000; ++i) {
                   MUSTER_RETURN_IF_ERROR(put(fmt::format("{:06}", i), std::string(i, 'x')));
                 }
                 return absl::OkStatus();
               }),
      IsOk());
  int next = 0;
  ASSERT_THAT(ReadSst(dir.File("a.sst"),
                      [&](std::string_view key, std::string_view value) {
                        EXPECT_EQ(key, fmt::format("{:06}", next));
                        EXPECT_EQ(value.size(), static_cast<size_t>(next++));
                        return absl::OkStatus();
                      }),
              IsOk());
  EXPECT_EQ(next, 5000);
}

TEST(SstFileTest, ErrorsNameThePath) {
  TempDir dir;
  const auto nothing = [](PutEntry) { return absl::OkStatus(); };
  const auto ignore = [](std::string_view, std::string_view) { return absl::OkStatus(); };
  EXPECT_THAT(WriteSst(dir.File("no/a.sst"), nothing),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.File("no/a.sst"))));
  EXPECT_FALSE(ReadSst(dir.File("missing.sst"), ignore).ok());
  const auto disorder = [](PutEntry put) {
    MUSTER_RETURN_IF_ERROR(put("b", ""));
    return put("a", "");
  };
  EXPECT_THAT(WriteSst(dir.File("b.sst"), disorder),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("b.sst")));
}

}  // namespace
}  // namespace muster::ps
