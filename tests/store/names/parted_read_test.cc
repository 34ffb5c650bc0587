#include "store/names/parted_read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;
using Kind = ReadTurn::Kind;

constexpr RetryLimits kReadLimits{
    .first = milliseconds(100), .longest = milliseconds(400), .total = std::chrono::seconds(5)};
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
const absl::Status kRefused = absl::FailedPreconditionError("refused");

MATCHER_P(AllowsBytes, bytes, "") {
  return arg.ok() && *arg == bytes;
}

/// Reads an object of 25 bytes in parts of 10, and has got the head of the first part.
class PartedReadTest : public ::testing::Test {
 protected:
  PartRequest Request() {
    const ReadTurn turn = plan_->Next(now_);
    EXPECT_EQ(turn.kind, Kind::kRequest);
    return turn.request;
  }
  PartRequest Begun() {
    PartRequest first = Request();
    EXPECT_THAT(plan_->Began(first, Head("bytes 0-9/25"), now_), AllowsBytes(10u));
    return first;
  }
  static PartHead Head(std::string_view range, std::string_view etag = "\"a\"") {
    return {.http = 206, .etag = etag, .content_range = range};
  }

  TimePoint now_;
  std::optional<PartedRead> plan_{std::in_place, "cannot read x", 10, kReadLimits, 1};
};

TEST_F(PartedReadTest, TheFirstHeadSaysWhatElseToReadAndOfWhichVersion) {
  const PartRequest first = Request();
  EXPECT_THAT(first.headers, ElementsAre("Range: bytes=0-9"));
  EXPECT_TRUE(first.clear);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kIdle) << "more is not known yet";
  EXPECT_EQ(plan_->parts(), 1u);
  ASSERT_THAT(plan_->Began(first, Head("bytes 0-9/25"), now_), AllowsBytes(10u));
  EXPECT_EQ(plan_->parts(), 3u);
  const PartRequest second = Request();
  const PartRequest third = Request();
  EXPECT_THAT(second.headers, ElementsAre("Range: bytes=10-19", "If-Match: \"a\""));
  EXPECT_THAT(third.headers, ElementsAre("Range: bytes=20-24", "If-Match: \"a\""));
  EXPECT_FALSE(third.clear);
  EXPECT_EQ(third.offset, 20u);
  ASSERT_THAT(plan_->Began(third, Head("bytes 20-24/25"), now_), AllowsBytes(5u));
  plan_->Ended(third, 5, now_);
  plan_->Ended(first, 10, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kIdle);
  plan_->Ended(second, 10, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  EXPECT_THAT(plan_->failure(), IsOk());
}

TEST_F(PartedReadTest, ARetryReadsItsPartOnly) {
  const PartRequest first = Begun();
  const PartRequest second = Request();
  plan_->Failed(second, 503, absl::UnavailableError("busy"), milliseconds(300), now_);
  const ReadTurn pause = plan_->Next(now_);
  ASSERT_EQ(pause.kind, Kind::kPause);
  EXPECT_EQ(pause.pause, milliseconds(300)) << "as the service asked";
  now_ += pause.pause;
  const PartRequest again = Request();
  EXPECT_EQ(again.offset, 10u);
  EXPECT_FALSE(again.clear) << "part 0 is in the file";
  // A part that is too short is no part.
  plan_->Ended(again, 9, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kPause);
  now_ += milliseconds(400);
  EXPECT_EQ(Request().offset, 10u);
  plan_->Ended(first, 10, now_);
}

TEST_F(PartedReadTest, AReplacedObjectIsReadAgainAfterTheRequestsForTheFormerVersion) {
  const PartRequest first = Begun();
  const PartRequest second = Request();
  const PartRequest third = Request();
  plan_->Failed(second, 412, kRefused, {}, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kIdle) << "others still write to the file";
  EXPECT_THAT(plan_->Began(third, Head("bytes 20-24/25"), now_),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
  plan_->Failed(third, 0, kRefused, {}, now_);
  plan_->Ended(first, 10, now_);
  now_ += milliseconds(100);
  const PartRequest fresh = Request();
  EXPECT_THAT(fresh.headers, ElementsAre("Range: bytes=0-9"));
  EXPECT_TRUE(fresh.clear);
  ASSERT_THAT(plan_->Began(fresh, Head("bytes 0-3/4", "\"b\""), now_), AllowsBytes(4u));
  plan_->Ended(fresh, 4, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  EXPECT_THAT(plan_->failure(), IsOk());
}

TEST_F(PartedReadTest, AServiceThatIgnoresTheConditionDoesNotMixVersions) {
  for (const PartHead& other : {Head("bytes 10-19/25", "\"b\""), Head("bytes 10-19/26")}) {
    plan_.emplace("cannot read x", 10, kReadLimits, 1);
    Begun();
    EXPECT_THAT(plan_->Began(Request(), other, now_),
                StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("replaced")));
    EXPECT_EQ(plan_->Next(now_).kind, Kind::kIdle);
  }
}

TEST_F(PartedReadTest, AnObjectThatIsReplacedAgainAndAgainIsAnError) {
  int versions = 0;
  while (plan_->failure().ok()) {
    const PartRequest first = Begun();
    plan_->Failed(Request(), 412, kRefused, {}, now_);
    plan_->Ended(first, 10, now_);
    const ReadTurn turn = plan_->Next(now_);
    now_ += turn.pause;
    ASSERT_LT(++versions, 100);
  }
  EXPECT_GE(versions, 3);
  EXPECT_THAT(plan_->failure(),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::HasSubstr("cannot read x: it was replaced again")));
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
}

TEST_F(PartedReadTest, AServiceWithoutRangesGivesTheWholeObject) {
  const PartRequest first = Request();
  const PartHead whole{.http = 200, .etag = "\"a\"", .content_range = ""};
  ASSERT_THAT(plan_->Began(first, whole, now_), AllowsBytes(kAny));
  EXPECT_EQ(plan_->parts(), 1u);
  plan_->Failed(first, 0, absl::UnavailableError("cut"), {}, now_);
  now_ += milliseconds(100);
  const PartRequest again = Request();
  EXPECT_THAT(again.headers, ElementsAre());
  EXPECT_TRUE(again.clear);
  ASSERT_THAT(plan_->Began(again, whole, now_), AllowsBytes(kAny));
  plan_->Ended(again, 25, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  EXPECT_THAT(plan_->failure(), IsOk());
}

TEST_F(PartedReadTest, WithoutAStrongTagOrTheRangeThatWasAskedForTheObjectIsReadByOneRequest) {
  for (const PartHead& head : {Head("bytes 0-9/25", ""), Head("bytes 0-9/25", "W/\"a\""),
                               Head("bytes 1-9/25"), Head("")}) {
    plan_.emplace("cannot read x", 10, kReadLimits, 1);
    const PartRequest first = Request();
    EXPECT_FALSE(plan_->Began(first, head, now_).ok()) << head.content_range;
    plan_->Failed(first, 0, kRefused, {}, now_);
    const PartRequest whole = Request();
    EXPECT_THAT(whole.headers, ElementsAre());
    EXPECT_TRUE(whole.clear);
    plan_->Ended(whole, 25, now_);
    EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  }
  // One part needs no tag.
  plan_.emplace("cannot read x", 10, kReadLimits, 1);
  EXPECT_THAT(plan_->Began(Request(), Head("bytes 0-9/10", ""), now_), AllowsBytes(10u));
}

TEST_F(PartedReadTest, AnEmptyObjectHasNoRange) {
  plan_->Failed(Request(), 416, kRefused, {}, now_);
  const PartRequest whole = Request();
  EXPECT_THAT(whole.headers, ElementsAre());
  plan_->Ended(whole, 0, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  EXPECT_THAT(plan_->failure(), IsOk());
}

TEST_F(PartedReadTest, AMissingObjectIsAnErrorAtOnce) {
  plan_->Failed(Request(), 404, absl::NotFoundError("gone"), {}, now_);
  EXPECT_EQ(plan_->Next(now_).kind, Kind::kEnd);
  EXPECT_THAT(plan_->failure(), StatusIs(absl::StatusCode::kNotFound, ::testing::_));
}

/// A service whose object is replaced now and then, and whose answers come late, in any order, cut
/// or refused; it may ignore ranges or conditions.
class Chaos {
 public:
  explicit Chaos(uint64_t seed)
      : rng_(seed), ranges_(rng_.Below(8) != 0), conditions_(rng_.Below(2) != 0) {}

  /// Reads the object and returns what is in the file at the end, or the error.
  absl::StatusOr<std::string> Read() {
    PartedRead plan("cannot read x", 10, kReadLimits, rng_.Below(1000));
    TimePoint now;
    for (int step = 0; step < 10'000; ++step) {
      if (rng_.Below(40) == 0) version_ += rng_.Below(3);
      const ReadTurn turn = flying_.size() < 4 ? plan.Next(now) : ReadTurn{Kind::kIdle, {}, {}};
      if (turn.kind == Kind::kEnd && flying_.empty()) {
        if (!plan.failure().ok()) return plan.failure();
        return file_;
      }
      if (turn.kind == Kind::kPause) now += turn.pause;
      if (turn.kind == Kind::kRequest) Send(turn.request, &plan, now);
      if (!flying_.empty() && (turn.kind != Kind::kRequest || rng_.Below(2) == 0)) {
        Land(&plan, now);
      }
    }
    return absl::InternalError("it does not end");
  }
  bool IsVersion(const std::string& file) const {
    for (uint64_t v = 0; v <= version_; ++v) {
      if (file == Object(v)) return true;
    }
    return false;
  }

 private:
  struct Flying {
    PartRequest request;
    std::string body;
    int failed = 0;  // the status of the answer
    bool head_refused = false;
  };

  static std::string Object(uint64_t version) {
    return std::string(version * 7 % 45, static_cast<char>('a' + version % 26));
  }
  static std::string Tag(uint64_t version) { return fmt::format("\"{}\"", version); }

  void Send(const PartRequest& request, PartedRead* plan, TimePoint now) {
    if (request.clear) file_.clear();
    const std::string object = Object(version_);
    std::string range, condition;
    for (const std::string& header : request.headers) {
      if (header.starts_with("Range: ")) range = header;
      if (header.starts_with("If-Match: ")) condition = header.substr(10);
    }
    Flying answer{.request = request, .body = object};
    PartHead head{.http = 200, .etag = {}, .content_range = {}};
    const std::string tag = Tag(version_);
    head.etag = tag;
    std::string content_range;
    if (rng_.Below(10) == 0) {
      answer.failed = 503;
    } else if (conditions_ && !condition.empty() && condition != tag) {
      answer.failed = 412;
    } else if (ranges_ && !range.empty()) {
      if (request.offset >= object.size()) {
        answer.failed = 416;
      } else {
        answer.body = object.substr(request.offset, 10);
        content_range = fmt::format("bytes {}-{}/{}", request.offset,
                                    request.offset + answer.body.size() - 1, object.size());
        head.http = 206;
        head.content_range = content_range;
      }
    }
    if (answer.failed == 0) {
      const auto most = plan->Began(request, head, now);
      answer.head_refused = !most.ok();
      if (most.ok() && answer.body.size() > *most) answer.head_refused = true;
    }
    flying_.push_back(std::move(answer));
  }

  void Land(PartedRead* plan, TimePoint now) {
    const size_t which = rng_.Below(flying_.size());
    const Flying answer = flying_[which];
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
    const bool cut = rng_.Below(8) == 0;
    if (answer.failed != 0 || answer.head_refused) {
      return plan->Failed(answer.request, answer.failed, absl::UnavailableError("busy"), {}, now);
    }
    const std::string body =
        answer.body.substr(0, cut ? answer.body.size() / 2 : std::string::npos);
    file_.resize(std::max(file_.size(), answer.request.offset + body.size()), '?');
    file_.replace(answer.request.offset, body.size(), body);
    if (cut) return plan->Failed(answer.request, 0, absl::UnavailableError("cut"), {}, now);
    plan->Ended(answer.request, body.size(), now);
  }

  Rng rng_;
  const bool ranges_;
  const bool conditions_;
  uint64_t version_ = 5;
  std::string file_;
  std::vector<Flying> flying_;
};

TEST(PartedReadChaosTest, WhatIsReadIsAlwaysOneVersion) {
  int whole = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Chaos chaos(seed);
    const auto file = chaos.Read();
    if (absl::IsUnavailable(file.status())) continue;
    ASSERT_THAT(file, IsOk()) << seed;
    ASSERT_TRUE(chaos.IsVersion(*file)) << "seed " << seed << ": " << *file;
    ++whole;
  }
  EXPECT_GT(whole, 1800) << "few reads end with an error";
}

}  // namespace
}  // namespace muster
