#include "proto/exported/sha256.h"

#include <fmt/format.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

// FIPS 180-4, examples of the standard's appendix.
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Sha256Test, KnownAnswers) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir.File("abc"), "abc"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string sum, Sha256OfFile(dir.File("abc")));
  EXPECT_EQ(sum, kOfAbc);
  EXPECT_THAT(Sha256OfFile(dir.File("no")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.File("no"))));
}

TEST(Sha256Test, SumsComeBackAndOtherLinesAreRefused) {
  const Sha256Sums sums{{"a b.npy", kOfAbc}, {"c.json", kOfNothing}};
  const std::string text = FormatSums(sums);
  EXPECT_EQ(text, fmt::format("{}  a b.npy\n{}  c.json\n", kOfAbc, kOfNothing));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Sha256Sums parsed, ParseSums(text));
  EXPECT_EQ(parsed, sums);
  EXPECT_THAT(ParseSums(text + "\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 3")));
  EXPECT_EQ(ParseSums(fmt::format("{} *a b.npy\n{}  c.json", kOfAbc, kOfNothing)).value(), sums)
      << "binary mode, and no newline at the end";
  EXPECT_EQ(ParseSums(fmt::format("{}  x\n", kOfAbc)).value(), (Sha256Sums{{"x", kOfAbc}}));
  std::string upper = fmt::format("{}  x\n", kOfAbc);
  upper[63] = 'D';
  const std::string bad[] = {
      fmt::format("{}  \n", kOfAbc),  // no name
      fmt::format("{}x x\n", kOfAbc), fmt::format("{} x\n", kOfAbc),
      fmt::format("{} xx\n", kOfAbc), upper,
  };
  for (const std::string& line : bad) {
    EXPECT_THAT(ParseSums(line), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")))
        << line;
  }
  EXPECT_THAT(ParseSums("hello"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hello")));
}

}  // namespace
}  // namespace muster
