#include "ps/net/internal/request.h"

#include <cstring>

#include "tests/ps/net/fake_handler.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::StatusIs;
using testing::FakeHandler;

constexpr size_t kKeys = 1000;
constexpr uint64_t kSlice = 500;

class RequestTest : public ::testing::Test {
 protected:
  /// Fills the blocks with one part of kKeys keys, and values of a push.
  wire::Header Frame(wire::Kind kind, wire::Encoding encoding) {
    const wire::Parts parts(1, 1, {{.table = 1, .keys = kKeys}});
    const std::string directory =
        kind == wire::Kind::kPull ? wire::EncodePull(parts) : wire::EncodePush({}, parts);
    const std::vector<uint64_t> keys(kKeys, 7);
    const size_t values = kind == wire::Kind::kPull ? 0 : kKeys * FakeHandler::kDim;
    EXPECT_TRUE(blocks_.directory.Resize(directory.size()));
    EXPECT_TRUE(blocks_.keys.Resize(kKeys * sizeof(uint64_t)));
    EXPECT_TRUE(blocks_.values.Resize(values * wire::BytesPerValue(encoding)));
    std::memcpy(blocks_.directory.data(), directory.data(), directory.size());
    std::memcpy(blocks_.keys.data(), keys.data(), blocks_.keys.size());
    if (values > 0) std::memset(blocks_.values.data(), 0, blocks_.values.size());
    wire::Header header;
    header.kind = kind;
    header.parts = 1;
    header.keys = kKeys;
    header.directory_bytes = static_cast<uint32_t>(directory.size());
    header.value_bytes = blocks_.values.size();
    header.encoding = encoding;
    header.checksum_kind = wire::Checksum::kXxh3;
    const std::span<const std::byte> pieces[] = {
        {blocks_.directory.data(), blocks_.directory.size()},
        {blocks_.keys.data(), blocks_.keys.size()},
        {blocks_.values.data(), blocks_.values.size()}};
    header.checksum = wire::ChecksumOf(pieces);
    return header;
  }
  size_t SlicesToTheEnd() {
    for (size_t slices = 1;; ++slices) {
      WorkLimit work(kSlice);
      if (request_.Go(&work).value() == Progress::kDone) return slices;
    }
  }

  FakeHandler handler_;
  FrameBlocks blocks_;
  Request request_{&handler_, &blocks_};
};

TEST_F(RequestTest, EveryStageThatGrowsWithTheFrameIsCutIntoSlices) {
  const size_t keys = kKeys * sizeof(uint64_t), values = kKeys * FakeHandler::kDim;
  request_.Begin(Frame(wire::Kind::kPull, wire::Encoding::kFloat32), {});
  EXPECT_GE(SlicesToTheEnd(), (keys + values * 4) / kSlice) << "both checksums";
  request_.Begin(Frame(wire::Kind::kPull, wire::Encoding::kFloat16), {});
  EXPECT_GE(SlicesToTheEnd(), (keys + values * 4 + values * 2) / kSlice) << "and narrowing";
  request_.Begin(Frame(wire::Kind::kPush, wire::Encoding::kFloat32), {});
  EXPECT_GE(SlicesToTheEnd(), (keys + values * 4) / kSlice);
  request_.Begin(Frame(wire::Kind::kPush, wire::Encoding::kFloat16), {});
  EXPECT_GE(SlicesToTheEnd(), (keys + values * 2 + values * 4) / kSlice) << "and widening";
}

TEST_F(RequestTest, AnErrorEndsIt) {
  wire::Header header = Frame(wire::Kind::kPull, wire::Encoding::kFloat32);
  header.checksum ^= 1;
  request_.Begin(header, {});
  WorkLimit work = WorkLimit::None();
  EXPECT_THAT(request_.Go(&work),
              StatusIs(absl::StatusCode::kDataLoss, ::testing::HasSubstr("checksum")));
  EXPECT_FALSE(request_.under_work());
}

TEST_F(RequestTest, OnlyAHandlerThatHasBegunIsToldOfTheEndOfItsConnection) {
  handler_.hold = true;
  request_.Begin(Frame(wire::Kind::kPush, wire::Encoding::kFloat32), {});
  WorkLimit little(1);
  EXPECT_EQ(request_.Go(&little).value(), Progress::kMore);
  EXPECT_EQ(request_.GoAbandoned(&little), Progress::kDone);
  EXPECT_FALSE(request_.under_work());
  EXPECT_EQ(handler_.abandoned, 0);
  request_.Begin(Frame(wire::Kind::kPush, wire::Encoding::kFloat32), {});
  WorkLimit work = WorkLimit::None();
  EXPECT_EQ(request_.Go(&work).value(), Progress::kMore);
  EXPECT_EQ(request_.GoAbandoned(&work), Progress::kDone);
  EXPECT_EQ(handler_.abandoned, 1);
}

}  // namespace
}  // namespace muster::ps
