#include "store/s3_store.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>

#include "tests/store/s3_fixture.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;
using ::testing::UnorderedElementsAre;

TEST_F(S3StoreTest, ObjectsComeBackAreListedAndDeleted) {
  EXPECT_THAT(List(), IsEmpty());
  ASSERT_THAT(Put("p00001/e1 +&=%~.sst", "one"), IsOk());
  ASSERT_THAT(Put("p00002/two.sst", ""), IsOk());
  EXPECT_THAT(List(), ElementsAre("p00001/e1 +&=%~.sst", "p00002/two.sst"));
  EXPECT_THAT(List("p00002/"), ElementsAre("p00002/two.sst"));
  EXPECT_EQ(*Fetched("p00001/e1 +&=%~.sst"), "one");
  EXPECT_EQ(*Fetched("p00002/two.sst"), "");
  EXPECT_EQ(*store_->Get("p00001/e1 +&=%~.sst", 3), "one");
  EXPECT_THAT(store_->Get("p00001/e1 +&=%~.sst", 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 bytes")));
  EXPECT_THAT(store_->Delete("p00001/e1 +&=%~.sst"), IsOk());
  EXPECT_THAT(store_->Delete("p00001/e1 +&=%~.sst"), IsOk()) << "again";
  EXPECT_THAT(Fetched("p00001/e1 +&=%~.sst"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("s3://tests/" + place_.prefix + "/p00001/e1 +&=%~.sst")));
  EXPECT_THAT(List(), ElementsAre("p00002/two.sst"));
}

TEST_F(S3StoreTest, APrefixIsAFolderAndNotTheBeginningOfANeighbour) {
  ASSERT_THAT(Put("a", "1"), IsOk());
  place_.prefix += "-neighbour";
  const auto neighbour = Open();
  EXPECT_THAT(*neighbour->List(""), IsEmpty());
}

TEST_F(S3StoreTest, AListingOfManyPagesIsWhole) {
  limits_.page_keys = 3;
  store_ = Open();
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("p/" + std::to_string(i) + " &+");
    ASSERT_THAT(Put(names.back(), "x"), IsOk());
  }
  const uint64_t requests = Seen("requests");
  EXPECT_EQ(List(), names);
  EXPECT_EQ(Seen("requests"), requests + 4) << "in pages";
}

TEST_F(S3StoreTest, ConnectionsAreUsedAgain) {
  ASSERT_THAT(Put("object", "x"), IsOk());
  const uint64_t connections = Seen("connections");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*store_->Get("object", 10), "x");
  EXPECT_EQ(Seen("connections"), connections);
}

TEST_F(S3StoreTest, ALargeObjectGoesInPartsAndComesBack) {
  const std::string text = Text((11 << 20) + 7);
  ASSERT_THAT(Put("large", text), IsOk());
  const auto back = Fetched("large");
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(*back == text);
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 0u);
}

TEST_F(S3StoreTest, ALargeObjectSaysThatItGetsOn) {
  const std::string text = Text((11 << 20) + 7);
  std::atomic<uint64_t> calls = 0, moved = 0;
  const auto count = [&](uint64_t bytes) {
    ++calls;
    moved += bytes;
  };
  auto staged = store_->Stage("large.tmp");
  ASSERT_THAT(staged, IsOk());
  std::ofstream(staged->path(), std::ios::binary) << text;
  ASSERT_THAT(store_->PublishLarge(*std::move(staged), "large", count), IsOk());
  EXPECT_EQ(moved.load(), text.size());
  EXPECT_GT(calls.load(), 1u);
  moved = 0;
  ASSERT_THAT(store_->FetchLarge("large", count), IsOk());
  EXPECT_GE(moved.load(), text.size());
}

TEST_F(S3StoreTest, AFailedUploadLeavesNothingAndACrashedOneIsEnded) {
  limits_.retries.total = std::chrono::milliseconds(5);
  store_ = Open();
  Faults(R"([{"kind": "503", "match": "partNumber=2", "times": 1000000}])");
  EXPECT_THAT(Put("large", Text(11 << 20)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("part 2 of 3")));
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 0u) << "it was aborted";
  // As a crash leaves it: the abort does not come through either.
  Faults(R"([{"kind": "503", "match": "partNumber=2", "times": 1000000},
             {"kind": "503", "method": "DELETE", "times": 1000000}])");
  EXPECT_THAT(Put("large", Text(11 << 20)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  Faults("[]");
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_EQ(*store_->DeleteUnfinished([](const std::string&) { return false; }), 0u);
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 1u);
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 0u);
}

TEST_F(S3StoreTest, FaultsThatPassAreNotSeen) {
  const std::string text = Text(300'000);
  const auto put_and_get = [&](const std::string& fault) {
    Faults(fault);
    ASSERT_THAT(Put("object", text), IsOk()) << fault;
    const auto back = Fetched("object");
    ASSERT_THAT(back, IsOk()) << fault;
    EXPECT_TRUE(*back == text) << fault;
  };
  put_and_get(R"([{"kind": "503", "times": 3}])");
  put_and_get(R"([{"kind": "500", "code": "InternalError", "times": 2}])");
  put_and_get(R"([{"kind": "cut", "method": "GET", "times": 2}])");
  put_and_get(R"([{"kind": "refuse", "times": 2}])");
  put_and_get(R"([{"kind": "lose_answer", "times": 2}])");
  put_and_get(R"([{"kind": "slow", "seconds": 3}])");
  const uint64_t bad_bodies = Seen("bad_bodies");
  put_and_get(R"([{"kind": "corrupt", "method": "PUT", "times": 2}])");
  EXPECT_EQ(Seen("bad_bodies"), bad_bodies + 2) << "the server saw that they were changed";
}

/// Three parts of an object of 11 MiB and 7 bytes are read.
class S3PartsTest : public S3StoreTest {
 protected:
  void SetUp() override {
    S3StoreTest::SetUp();
    limits_.stall_timeout = std::chrono::seconds(20);  // a busy machine makes no more requests
    store_ = Open();
    ASSERT_THAT(Put("large", text_), IsOk());
  }
  void ExpectWhole(const std::string& fault, uint64_t requests) {
    Faults(fault);
    const uint64_t before = Seen("requests");
    const auto back = Fetched("large");
    ASSERT_THAT(back, IsOk()) << fault;
    EXPECT_TRUE(*back == text_) << fault;
    EXPECT_EQ(Seen("requests"), before + requests) << fault;
  }
  const std::string text_ = Text((11 << 20) + 7);
};

TEST_F(S3PartsTest, APartThatFailsIsReadAgainAndNoOther) {
  ExpectWhole("[]", 3);
  ExpectWhole(R"([{"kind": "503", "match": "bytes=5242880-", "times": 2}])", 5);
  ExpectWhole(R"([{"kind": "cut", "match": "bytes=10485760-", "times": 2}])", 5);
  ExpectWhole(R"([{"kind": "cut", "match": "bytes=0-"}])", 4);
  ExpectWhole(R"([{"kind": "refuse", "match": "bytes=5242880-"}])", 4);
}

TEST_F(S3PartsTest, APartThatStandsStillIsReadAgain) {
  limits_.stall_timeout = std::chrono::seconds(1);
  store_ = Open();
  Faults(R"([{"kind": "slow", "match": "bytes=5242880-", "seconds": 3}])");
  const auto back = Fetched("large");
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(*back == text_);
}

TEST_F(S3PartsTest, AServiceThatAsksForAPauseGetsIt) {
  limits_.retries.total = std::chrono::seconds(1);
  store_ = Open();
  Faults(R"([{"kind": "503", "times": 1000000, "headers": {"Retry-After": "1"}}])");
  const uint64_t before = Seen("requests");
  EXPECT_FALSE(Fetched("large").ok());
  EXPECT_FALSE(store_->Get("large", 1).ok());
  EXPECT_FALSE(Put("other", "x").ok());
  EXPECT_LE(Seen("requests"), before + 6) << "two for each; otherwise it were hundreds";
}

TEST_F(S3PartsTest, APartThatKeepsFailingEndsAll) {
  limits_.retries.total = std::chrono::milliseconds(5);
  store_ = Open();
  Faults(R"([{"kind": "503", "match": "bytes=5242880-", "times": 1000000}])");
  EXPECT_THAT(Fetched("large"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("large")));
  Faults(R"([{"kind": "403", "code": "AccessDenied", "match": "bytes=10485760-"}])");
  EXPECT_THAT(Fetched("large"), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("large")));
}

TEST_F(S3PartsTest, PartsOfTwoVersionsNeverMix) {
  const std::string other(12 << 20, 'x');
  const std::string replace =
      fmt::format(R"({{"kind": "replace", "bytes": {}, "match": "bytes=5242880-"}})", other.size());
  for (const std::string& faults :
       {replace, replace + R"(,{"kind": "ignore_condition", "method": "GET", "times": 1000000})"}) {
    ASSERT_THAT(Put("large", text_), IsOk());
    Faults("[" + faults + "]");
    const auto back = Fetched("large");
    ASSERT_THAT(back, IsOk()) << faults;
    EXPECT_TRUE(*back == other) << faults;
  }
}

TEST_F(S3PartsTest, AServiceWithoutRangesIsServed) {
  ExpectWhole(R"([{"kind": "ignore_range", "times": 1000000}])", 1);
  ExpectWhole(R"([{"kind": "ignore_range", "match": "bytes=10485760-"}])", 4);
}

TEST_F(S3PartsTest, DamageOnTheWayIsLeftToTheReader) {
  Faults(R"([{"kind": "corrupt_answer", "match": "bytes=5242880-"}])");
  std::string damaged = text_;
  damaged[5 << 20] ^= 1;
  const auto back = Fetched("large");
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(*back == damaged);
}

TEST_F(S3StoreTest, ALostAnswerToTheEndOfAnUploadIsNoFailure) {
  Faults(R"([{"kind": "lose_answer", "method": "POST", "match": "?uploadId="},
             {"kind": "404", "code": "NoSuchUpload", "method": "POST", "match": "?uploadId="}])");
  const uint64_t requests = Seen("requests");
  EXPECT_THAT(Put("large", Text(11 << 20)), IsOk());
  EXPECT_EQ(Seen("requests"), requests + 7) << "begin, 3 parts, end twice, and a look";
  EXPECT_THAT(List(), ElementsAre("large"));
}

TEST_F(S3StoreTest, TheFirstOfTwoNewObjectsStays) {
  ASSERT_THAT(store_->PutNew("OWNER", "one"), IsOk());
  EXPECT_THAT(store_->PutNew("OWNER", "two"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("OWNER")));
  EXPECT_EQ(*store_->Get("OWNER", 10), "one");
  // Somebody writes it between the look and the writing.
  Faults(R"([{"kind": "404", "code": "NoSuchKey", "method": "GET"}])");
  EXPECT_THAT(store_->PutNew("OWNER", "two"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("OWNER")));
  EXPECT_EQ(*store_->Get("OWNER", 10), "one");
}

TEST_F(S3StoreTest, AServiceWithoutConditionsIsServed) {
  Faults(R"([{"kind": "501", "code": "NotImplemented", "method": "PUT"}])");
  EXPECT_THAT(store_->PutNew("one", "1"), IsOk());
  Faults(R"([{"kind": "ignore_condition", "method": "PUT"}])");
  EXPECT_THAT(store_->PutNew("two", "2"), IsOk());
  EXPECT_THAT(List(), UnorderedElementsAre("one", "two"));
}

TEST_F(S3StoreTest, ErrorsSayWhatToDo) {
  limits_.retries.total = std::chrono::milliseconds(5);
  store_ = Open();
  EXPECT_THAT(store_->CheckWritable(), IsOk());
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_EQ(*store_->DeleteUnfinished(Any), 0u);
  constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
  constexpr auto kWrong = absl::StatusCode::kFailedPrecondition;
  for (const auto& [status, code, meaning, words] :
       {std::tuple("403", "AccessDenied", kDenied, "do not have the right"),
        std::tuple("403", "RequestTimeTooSkewed", kDenied, "clock of this machine"),
        std::tuple("403", "ExpiredToken", kDenied, "session token has expired"),
        std::tuple("400", "AuthorizationHeaderMalformed", kWrong, "region is wrong"),
        std::tuple("301", "PermanentRedirect", kWrong, "another region")}) {
    Faults(fmt::format(R"([{{"kind": "{}", "code": "{}", "times": 1000}}])", status, code));
    EXPECT_THAT(store_->CheckWritable(),
                StatusIs(meaning, AllOf(HasSubstr(words), HasSubstr(code))));
  }
  Faults("[]");
  place_.bucket = "no-such-bucket";
  store_ = Open();
  EXPECT_THAT(store_->CheckWritable(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("bucket does not exist")));
  const std::string proxy = std::exchange(place_.options.endpoint, "http://127.0.0.1:1");
  store_ = Open();
  EXPECT_THAT(store_->CheckWritable(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("http://127.0.0.1:1")));
  place_.options.endpoint = proxy;
}

TEST_F(S3StoreTest, ACredentialsFileIsReadAgainWhenItChanges) {
  const testing::TempDir folder;
  place_.options.credentials_file = folder.File("credentials");
  store_ = Open();
  EXPECT_THAT(store_->CheckWritable(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("credentials")));
  const auto write = [&](const std::string& secret) {
    ASSERT_THAT(WriteFileAtomically(place_.options.credentials_file,
                                    "[default]\naws_access_key_id = test-key\n"
                                    "aws_secret_access_key = " +
                                        secret + "\naws_session_token = a/b+c\n"),
                IsOk());
  };
  write("test-secret");
  EXPECT_THAT(store_->CheckWritable(), IsOk());
  EXPECT_EQ(Seen("bad_signatures"), 0u);
}

}  // namespace
}  // namespace muster
