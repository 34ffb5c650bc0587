#include "master/journal/rocksdb_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(JournalStatus, SaysWhatToDo) {
  EXPECT_THAT(JournalStatus(rocksdb::Status::OK(), "/s/journal"), IsOk());
  EXPECT_THAT(JournalStatus(rocksdb::Status::NoSpace("write"), "/s/journal"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("/s/journal"), HasSubstr("Free space and run again"))));
  EXPECT_THAT(JournalStatus(rocksdb::Status::IOError("mkdir", "Permission denied"), "/s/journal"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("is not writable")));
  EXPECT_THAT(JournalStatus(rocksdb::Status::Corruption("bad block"), "/s/journal"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bad block")));
  EXPECT_THAT(JournalStatus(rocksdb::Status::IOError("odd"), "/s/journal"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("odd")));
}

}  // namespace
}  // namespace muster
