#include <cstring>
#include <memory>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "proto/wire/frame.h"
#include "tests/support/status_matchers.h"

namespace muster::wire {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Parts PullParts() {
  Parts parts(3, 9, {{.table = 1, .keys = 4}, {.table = 2, .keys = 1}});
  parts.Add(7, 1ull << 40);
  return parts;
}
Parts PushParts() {
  Parts parts(255, 5, {{.table = 4, .keys = 100}, {.table = 5, .keys = 0}});
  parts.Add(0, 0);
  return parts;
}
constexpr PushIdentity kPush{.dataset = 1,
                             .epoch = 2,
                             .shard_index = 1ull << 33,
                             .minibatch = 15,
                             .run = 3,
                             .token = (7ull << 40) | 12,
                             .step = 123456789012};
std::string Push() {
  return EncodePush(kPush, PushParts());
}
absl::StatusOr<Parts> PullFrom(const Header& header, std::string_view directory) {
  Parts parts(1, 2, {{.table = 3, .keys = 4}});  // of the request before
  MUSTER_RETURN_IF_ERROR(DecodePull(header, directory, &parts));
  return parts;
}
absl::StatusOr<std::pair<PushIdentity, Parts>> PushFrom(const Header& header,
                                                        std::string_view directory) {
  std::pair<PushIdentity, Parts> push;
  MUSTER_RETURN_IF_ERROR(DecodePush(header, directory, &push.first, &push.second));
  return push;
}
/// Three groups, two of them with a version.
Parts VersionedParts() {
  Parts parts(3, 9,
              {{.table = 1, .keys = 4, .version = 1ull << 50},
               {.table = 2, .keys = 1},
               {.table = 5, .keys = 7, .version = kNoVersion}});
  return parts;
}
Header HeaderOf(Kind kind, uint32_t parts, uint64_t keys, uint32_t versions = 0) {
  Header header;
  header.kind = kind;
  header.parts = parts;
  header.versions = versions;
  header.keys = keys;
  return header;
}

TEST(DirectoryTest, RoundTrips) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const Hello hello,
      DecodeHello(EncodeHello(
          {.job = "j", .job_id = "i", .peer = "w-0", .software = "", .ring_bytes_max = 9})));
  EXPECT_EQ(hello.job, "j");
  EXPECT_EQ(hello.job_id, "i");
  EXPECT_EQ(hello.peer, "w-0");
  EXPECT_EQ(hello.software, "");
  EXPECT_EQ(hello.ring_bytes_max, 9u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const HelloReply answer,
                              DecodeHelloReply(EncodeHelloReply({.server_incarnation = 77,
                                                                 .partition_count = 256,
                                                                 .lane = 1,
                                                                 .lane_count = 2,
                                                                 .ring_bytes = 8})));
  EXPECT_EQ(answer.server_incarnation, 77u);
  EXPECT_EQ(answer.partition_count, 256u);
  EXPECT_EQ(answer.lane, 1u);
  EXPECT_EQ(answer.ring_bytes, 8u);
  EXPECT_EQ(answer.lane_count, 2u);

  MUSTER_ASSERT_OK_AND_ASSIGN(const auto pull,
                              PullFrom(HeaderOf(Kind::kPull, 2, 5), EncodePull(PullParts())));
  EXPECT_EQ(pull, PullParts());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto push, PushFrom(HeaderOf(Kind::kPush, 2, 100), Push()));
  EXPECT_EQ(push.first, kPush);
  EXPECT_EQ(push.second, PushParts());

  const std::vector<PartReply> replies = {
      {.partition = 1, .code = PartCode::kOk, .skipped = true},
      {.partition = 2, .code = PartCode::kMissing, .skipped = false}};
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const Reply reply, DecodeReply(HeaderOf(Kind::kPushReply, 2, 0), EncodeReply(replies, "no")));
  EXPECT_EQ(reply.parts, replies);
  EXPECT_EQ(reply.text, "no");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, DecodeError(EncodeError("because")));
  EXPECT_EQ(text, "because");
}

TEST(DirectoryTest, GroupsOfAPullMayHaveVersionsAndItsReplyHasOneForEach) {
  EXPECT_EQ(VersionedParts().version_count(), 2u);
  const std::string pull = EncodePull(VersionedParts());
  MUSTER_ASSERT_OK_AND_ASSIGN(const Parts parts, PullFrom(HeaderOf(Kind::kPull, 1, 12, 2), pull));
  EXPECT_EQ(parts, VersionedParts());
  EXPECT_EQ(parts.version_count(), 2u);
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 1, 12, 1), pull),
              StatusIs(kInvalid, HasSubstr("2 versions, the header says 1")));
  const std::string push = EncodePush(kPush, VersionedParts());
  EXPECT_THAT(PushFrom(HeaderOf(Kind::kPush, 1, 12), push),
              StatusIs(kInvalid, HasSubstr("2 versions, the header says 0")));

  const std::vector<PartReply> replies = {{.partition = 3}};
  const std::vector<uint64_t> versions = {1ull << 50, 12};
  const std::string bytes = EncodeReply(replies, "no", versions);
  EXPECT_EQ(bytes.size(), ReplyDirectoryBytes(1, 2) + 2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Reply reply,
                              DecodeReply(HeaderOf(Kind::kPullReply, 1, 0, 2), bytes));
  EXPECT_EQ(reply.versions, versions);
  EXPECT_EQ(reply.text, "no");
  EXPECT_FALSE(DecodeReply(HeaderOf(Kind::kPullReply, 1, 0, 1), bytes).ok());
  EXPECT_THAT(DecodeReply(HeaderOf(Kind::kPullReply, 1, 0, 1000), bytes),
              StatusIs(kInvalid, HasSubstr("cannot hold the 1000 versions")));
}

TEST(DirectoryTest, AVersionThatIsNoneIsRefused) {
  const std::vector<uint64_t> versions = {kUnversioned};
  EXPECT_THAT(DecodeReply(HeaderOf(Kind::kPullReply, 0, 0, 1), EncodeReply({}, "", versions)),
              StatusIs(kInvalid, HasSubstr("a version is none")));
  std::string pull = EncodePull(Parts(3, 9, {{.table = 1, .keys = 4, .version = 1}}));
  std::memset(pull.data() + pull.size() - 8, 0xff, 8);
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 1, 4, 0), pull),
              StatusIs(kInvalid, HasSubstr("group 0 of part 0 has no version")));
}

TEST(DirectoryTest, RowsAreUnchangedOnlyByTheVersionThatTheAskerHolds) {
  EXPECT_TRUE((Group{.table = 1, .keys = 1, .version = 7}.Unchanged(7)));
  EXPECT_FALSE((Group{.table = 1, .keys = 1, .version = 7}.Unchanged(8)));
  EXPECT_FALSE((Group{.table = 1, .keys = 1, .version = kNoVersion}.Unchanged(kNoVersion)));
  EXPECT_FALSE((Group{.table = 1, .keys = 1}.Unchanged(kUnversioned)));
}

TEST(DirectoryTest, TextsAreCutAtTheLimitWhenSentAndRefusedBeyondWhenReceived) {
  const std::string large(kTextBytesMax + 1, 'x');
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, DecodeError(EncodeError(large)));
  EXPECT_EQ(text.size(), kTextBytesMax);
  std::string forged = EncodeError(text) + "x";
  const uint32_t size = kTextBytesMax + 1;
  std::memcpy(forged.data(), &size, sizeof(size));
  EXPECT_THAT(DecodeError(forged), StatusIs(kInvalid, HasSubstr("4097")));
}

TEST(DirectoryTest, CountsThatDisagreeWithTheHeaderAreRefused) {
  const std::string pull = EncodePull(PullParts());
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 2, 6), pull),
              StatusIs(kInvalid, HasSubstr("5 keys, the header says 6")));
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 1, 5), pull),
              StatusIs(kInvalid, HasSubstr("16 bytes are left over")));
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 3, 5), pull),
              StatusIs(kInvalid, HasSubstr("it ends at byte 48")));
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 60'000, 5), pull),
              StatusIs(kInvalid, HasSubstr("cannot hold the 60000 parts")));
  const std::string push = Push();
  EXPECT_THAT(PushFrom(HeaderOf(Kind::kPush, 2, 99), push),
              StatusIs(kInvalid, HasSubstr("100 keys, the header says 99")));
  EXPECT_THAT(PushFrom(HeaderOf(Kind::kPush, 1, 100), push),
              StatusIs(kInvalid, HasSubstr("16 bytes are left over")));
}

TEST(DirectoryTest, GroupLimitsHold) {
  Parts parts(1, 1, {});
  for (uint32_t i = 0; i < kGroupsPerPartMax; ++i) parts.AddGroup({.table = 1, .keys = 1});
  EXPECT_TRUE(PullFrom(HeaderOf(Kind::kPull, 1, kGroupsPerPartMax), EncodePull(parts)).ok());
  parts.AddGroup({});
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 1, kGroupsPerPartMax), EncodePull(parts)),
              StatusIs(kInvalid, HasSubstr("1025 groups")));
  // A count that no memory could hold is refused before anything is reserved for it.
  std::string forged = EncodePull(PullParts());
  const uint32_t groups = 1000;
  std::memcpy(forged.data() + 4, &groups, sizeof(groups));
  EXPECT_THAT(PullFrom(HeaderOf(Kind::kPull, 2, 5), forged),
              StatusIs(kInvalid, HasSubstr("within the 1000 groups of part 0")));
}

TEST(DirectoryTest, UnknownCodesAndPaddingAreRefused) {
  const std::vector<PartReply> replies = {{.partition = 1}};
  const Header header = HeaderOf(Kind::kPushReply, 1, 0);
  for (const auto& [at, value, message] :
       {std::tuple{4, 6, "unknown code 6"}, {5, 2, "flag"}, {6, 1, "padding"}}) {
    std::string bytes = EncodeReply(replies, "");
    bytes[at] = static_cast<char>(value);
    EXPECT_THAT(DecodeReply(header, bytes), StatusIs(kInvalid, HasSubstr(message)));
  }
}

/// `bytes` in a buffer of exactly its size, so that a sanitizer sees a read beyond its end.
struct Exact {
  explicit Exact(std::string_view bytes) : data(new char[bytes.size()]), size(bytes.size()) {
    std::memcpy(data.get(), bytes.data(), bytes.size());
  }
  std::string_view view() const { return {data.get(), size}; }
  std::unique_ptr<char[]> data;
  size_t size;
};

TEST(DirectoryTest, EveryPrefixIsRefused) {
  const std::vector<PartReply> replies(2);
  const auto refused = [](const std::string& bytes, auto decode) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Exact prefix(std::string_view(bytes).substr(0, size));
      EXPECT_THAT(decode(prefix.view()), StatusIs(kInvalid, HasSubstr("malformed"))) << size;
    }
  };
  refused(EncodeHello({.job = "job", .job_id = "i", .peer = "p", .software = "s"}), DecodeHello);
  refused(EncodeHelloReply({}), DecodeHelloReply);
  refused(EncodeError("text"), DecodeError);
  refused(EncodePull(VersionedParts()),
          [](std::string_view in) { return PullFrom(HeaderOf(Kind::kPull, 1, 12, 2), in); });
  refused(EncodePull(PullParts()),
          [](std::string_view in) { return PullFrom(HeaderOf(Kind::kPull, 2, 5), in); });
  refused(Push(), [](std::string_view in) { return PushFrom(HeaderOf(Kind::kPush, 2, 100), in); });
  refused(EncodeReply(replies, "text"),
          [](std::string_view in) { return DecodeReply(HeaderOf(Kind::kPullReply, 2, 0), in); });
}

TEST(DirectoryTest, RandomCorruptionNeverCrashesAndNeverBreaksTheCounts) {
  Rng rng(3);
  int accepted = 0;
  int refused = 0;
  const std::vector<PartReply> replies(5);
  const std::string originals[] = {
      EncodeHello({.job = "a", .job_id = "i", .peer = "b", .software = "c"}),
      EncodeHelloReply({}),
      EncodePull(PullParts()),
      EncodePull(VersionedParts()),
      Push(),
      EncodeReply(replies, "text"),
      EncodeError("text")};
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes = originals[rng.Below(std::size(originals))];
    for (uint64_t flips = 1 + rng.Below(4); flips-- > 0;) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(4) == 0 ? 0xff : rng.Next());
    }
    if (rng.Below(4) == 0) bytes.resize(rng.Below(bytes.size() + 1));
    const Exact exact(bytes);
    const Header header =
        HeaderOf(Kind::kPull, static_cast<uint32_t>(rng.Below(7)), rng.Below(2) == 0 ? 5 : 100);
    const auto count = [&](const auto& result) { ++(result.ok() ? accepted : refused); };
    count(DecodeHello(exact.view()));
    count(DecodeHelloReply(exact.view()));
    count(DecodeReply(header, exact.view()));
    count(DecodeError(exact.view()));
    if (const auto pull = PullFrom(header, exact.view()); pull.ok()) {
      uint64_t keys = 0;
      for (const Part& part : *pull) {
        for (const Group& group : part.groups) keys += group.keys;
      }
      EXPECT_EQ(keys, header.keys);
      EXPECT_EQ(pull->size(), header.parts);
    }
    count(PushFrom(header, exact.view()));
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace muster::wire
