#include "master/journal/acknowledged_mark.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using testing::IsOk;

class AcknowledgedMarkTest : public ::testing::Test {
 protected:
  std::string Bytes() { return *ReadFile(AcknowledgedMark::PathIn(folder_.path()), 1 << 20); }
  /// What is on the disk when a write of `batch` is cut off after its first byte that differs.
  void Tear(AcknowledgedMark* mark, uint64_t batch) {
    std::string torn = Bytes();
    ASSERT_THAT(mark->Write(batch), IsOk());
    const std::string whole = Bytes();
    ASSERT_EQ(torn.size(), whole.size());
    const auto at = std::ranges::mismatch(torn, whole);
    ASSERT_NE(at.in1, torn.end());
    *at.in1 = *at.in2;
    ASSERT_THAT(WriteFileAtomically(AcknowledgedMark::PathIn(folder_.path()), torn), IsOk());
  }
  std::optional<uint64_t> Read() {
    return *AcknowledgedMark::Read(rocksdb::Env::Default(), folder_.path());
  }

  testing::TempDir folder_;
};

TEST_F(AcknowledgedMarkTest, ATornWriteLeavesTheBatchBeforeIt) {
  for (const uint64_t last : {uint64_t{9}, uint64_t{10}}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto mark,
                                AcknowledgedMark::Open(rocksdb::Env::Default(), folder_.path(), 5));
    for (uint64_t batch = 6; batch < last; ++batch) ASSERT_THAT(mark->Write(batch), IsOk());
    ASSERT_EQ(Read(), last - 1);
    Tear(mark.get(), last);
    EXPECT_EQ(Read(), last - 1) << "not that of the opening";
    RemoveFile(AcknowledgedMark::PathIn(folder_.path()));
  }
}

}  // namespace
}  // namespace muster
