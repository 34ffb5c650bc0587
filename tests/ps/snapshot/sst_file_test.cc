#include "ps/snapshot/sst_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/random.h"
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
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const SstFile written,
      WriteSst(
          dir.File("a.sst"),
          [](PutEntry put) {
            for (int i = 0; i < 5000; ++i) {
              MUSTER_RETURN_IF_ERROR(put(fmt::format("{:06}", i), std::string(i, 'x')));
            }
            return absl::OkStatus();
          },
          Blocks::kCompressed));
  EXPECT_GT(written.bytes, 0u);
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

/// 3 MB in entries, of bytes below `values` that are drawn at random.
absl::StatusOr<SstFile> WriteBytes(const std::string& path, uint64_t values, Blocks blocks) {
  Rng rng(1);
  return WriteSst(
      path,
      [&](PutEntry put) {
        for (int i = 0; i < 3000; ++i) {  // of a size that RocksDB writes in many steps
          std::string value(1000, '\0');
          for (char& byte : value) byte = static_cast<char>(rng.Below(values));
          MUSTER_RETURN_IF_ERROR(put(fmt::format("{:06}", i), value));
        }
        return absl::OkStatus();
      },
      blocks);
}

TEST(SstFileTest, TheHashAndTheSizeAreThoseOfTheFileAsItLies) {
  for (const Blocks blocks : {Blocks::kPlain, Blocks::kCompressed}) {
    TempDir dir;
    MUSTER_ASSERT_OK_AND_ASSIGN(const SstFile written, WriteBytes(dir.File("a.sst"), 256, blocks));
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string lies, ReadFile(dir.File("a.sst"), 10 << 20));
    EXPECT_GT(lies.size(), 3'000'000u);
    EXPECT_EQ(written.bytes, lies.size());
    EXPECT_EQ(written.hash, XXH3_64bits(lies.data(), lies.size()));
  }
}

TEST(SstFileTest, OnlyWhatIsCompressedIsSmaller) {
  TempDir dir;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SstFile plain, WriteBytes(dir.File("a"), 1, Blocks::kPlain));
  MUSTER_ASSERT_OK_AND_ASSIGN(const SstFile compressed,
                              WriteBytes(dir.File("b"), 1, Blocks::kCompressed));
  EXPECT_GT(plain.bytes, 3'000'000u);
  EXPECT_LT(compressed.bytes, 300'000u);
}

TEST(SstFileTest, ErrorsNameThePath) {
  TempDir dir;
  const auto nothing = [](PutEntry) { return absl::OkStatus(); };
  const auto ignore = [](std::string_view, std::string_view) { return absl::OkStatus(); };
  EXPECT_THAT(WriteSst(dir.File("no/a.sst"), nothing, Blocks::kPlain).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.File("no/a.sst"))));
  EXPECT_FALSE(ReadSst(dir.File("missing.sst"), ignore).ok());
  const auto disorder = [](PutEntry put) {
    MUSTER_RETURN_IF_ERROR(put("b", ""));
    return put("a", "");
  };
  EXPECT_THAT(WriteSst(dir.File("b.sst"), disorder, Blocks::kPlain).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("b.sst")));
}

}  // namespace
}  // namespace muster::ps
