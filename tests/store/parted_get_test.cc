#include "store/parted_get.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/mutex.h"
#include "store/local_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr RetryLimits kQuick{.first = std::chrono::milliseconds(1),
                             .longest = std::chrono::milliseconds(2),
                             .total = std::chrono::seconds(60)};

/// A service with one object; counts requests that are made at the same time.
class FakeService {
 public:
  explicit FakeService(std::string object) : object_(std::move(object)) {}

  Tried Try(const HttpRequest& request) {
    Count in(this);
    uint64_t first = 0;
    const std::string& range = request.headers.at(0);  // "Range: bytes=FIRST-LAST"
    std::from_chars(range.data() + range.find('=') + 1, range.data() + range.size(), first);
    if (first == refused_) return {refusal_, {}};
    const std::string body = object_.substr(first, 10);
    const std::string place =
        fmt::format("bytes {}-{}/{}", first, first + body.size() - 1, object_.size());
    HttpAnswer answer{
        .status = 206, .headers = {{"ETag", "\"a\""}, {"Content-Range", place}}, .body = ""};
    if (const absl::Status status = request.on_head(answer); !status.ok()) return {status, {}};
    if (first > 0) WaitForOthers();
    EXPECT_THAT(request.on_bytes(body.substr(0, 3)), IsOk());
    EXPECT_THAT(request.on_bytes(body.substr(3)), IsOk());
    if (!object_.ends_with(body)) {
      EXPECT_THAT(request.on_bytes("x"), StatusIs(absl::StatusCode::kUnavailable,
                                                  "the body is longer than its head says"));
    }
    return {absl::OkStatus(), answer};
  }
  /// A part but the first one ends after so many have been in progress at the same time.
  void WaitUntilAtOnce(int count) { wanted_ = count; }
  /// The part at `offset` fails.
  void Refuse(uint64_t offset, absl::Status status) {
    refused_ = offset;
    refusal_ = std::move(status);
  }
  int most_at_once() {
    MutexLock lock(&mutex_);
    return most_;
  }

 private:
  struct Count {
    explicit Count(FakeService* of) : service(of) {
      MutexLock lock(&service->mutex_);
      service->most_ = std::max(service->most_, ++service->now_);
      service->changed_.SignalAll();
    }
    ~Count() {
      MutexLock lock(&service->mutex_);
      --service->now_;
    }
    FakeService* const service;
  };
  void WaitForOthers() {
    MutexLock lock(&mutex_);
    while (most_ < wanted_) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return;
    }
  }

  const std::string object_;
  uint64_t refused_ = ~uint64_t{0};
  absl::Status refusal_;
  int wanted_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int now_ MUSTER_GUARDED_BY(mutex_) = 0;
  int most_ MUSTER_GUARDED_BY(mutex_) = 0;
};

class PartedGetTest : public ::testing::Test {
 protected:
  absl::Status Get(uint32_t at_once) {
    PartedRead plan("cannot read x", 10, kQuick, 1);
    return GetInParts(
        &plan, file_.fd(), at_once,
        [this](const HttpRequest& request) { return service_.Try(request); }, &clock_);
  }
  static std::string Object() {
    std::string object;
    for (int i = 0; i < 95; ++i) object += static_cast<char>('!' + i % 90);
    return object;
  }

  const SystemClock clock_;
  FakeService service_{Object()};
  LocalFile file_ = *LocalFile::Nameless();
};

TEST_F(PartedGetTest, AllPartsComeBySoManyRequestsAtOnce) {
  service_.WaitUntilAtOnce(3);
  ASSERT_THAT(Get(3), IsOk());
  EXPECT_EQ(*ReadFile(file_.path(), 1000), Object());
  EXPECT_EQ(service_.most_at_once(), 3);
}

TEST_F(PartedGetTest, OneAfterTheOtherIfThatIsAllowed) {
  ASSERT_THAT(Get(1), IsOk());
  EXPECT_EQ(*ReadFile(file_.path(), 1000), Object());
  EXPECT_EQ(service_.most_at_once(), 1);
}

TEST_F(PartedGetTest, AFailureOfOnePartEndsAll) {
  service_.Refuse(50, absl::PermissionDeniedError("no"));
  EXPECT_THAT(Get(4), StatusIs(absl::StatusCode::kPermissionDenied, "no"));
  service_.Refuse(0, absl::NotFoundError("gone"));
  EXPECT_THAT(Get(4), StatusIs(absl::StatusCode::kNotFound, "gone"));
}

}  // namespace
}  // namespace muster
