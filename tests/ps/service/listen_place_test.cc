#include "ps/service/listen_place.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr char kMaster[] = "127.0.0.1:20000";

TEST(ListenPlaceTest, AServerListensWhereItReachesTheMaster) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ListenPlace place, FindListenPlace({}, kMaster));
  EXPECT_EQ(place.host, "127.0.0.1");
  EXPECT_EQ(place.advertise, "127.0.0.1");
}

TEST(ListenPlaceTest, TheAdvertisedNameIsKept) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ListenPlace place,
                              FindListenPlace({.advertise = "gpu-1.example"}, kMaster));
  EXPECT_EQ(place.host, "127.0.0.1");
  EXPECT_EQ(place.advertise, "gpu-1.example");
}

TEST(ListenPlaceTest, AWildcardIsAdvertisedAsWhatReachesTheMaster) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const ListenPlace place,
      FindListenPlace({.address = "0.0.0.0", .ports = {7, 9}, .insecure = true}, kMaster));
  EXPECT_EQ(place.host, "0.0.0.0");
  EXPECT_EQ(place.advertise, "127.0.0.1");
  EXPECT_EQ(place.ports, (PortRange{7, 9}));
}

TEST(ListenPlaceTest, OtherMachinesNeedTheWord) {
  for (const char* address : {"0.0.0.0", "[::]", "192.0.2.1"}) {
    EXPECT_THAT(FindListenPlace({.address = address}, kMaster),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--insecure")))
        << address;
  }
}

TEST(ListenPlaceTest, NobodyConnectsToAWildcard) {
  EXPECT_THAT(FindListenPlace({.advertise = "[::]", .insecure = true}, kMaster),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST(ListenPlaceTest, ANameMayComeLater) {
  EXPECT_THAT(FindListenPlace({}, "no-such-master.invalid:1"),
              StatusIs(absl::StatusCode::kUnavailable, _));
}

}  // namespace
}  // namespace muster::ps
