#include "worker_sdk/member/master_exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>

#include "proto/fields/encode.h"
#include "proto/fields/generated.h"
#include "tests/worker_sdk/control/raw_master.h"

namespace muster::internal {
namespace {

using sdk::testing::Answer;
using sdk::testing::Begin;
using sdk::testing::RawMaster;
using sdk::testing::Trailers;
using ::testing::HasSubstr;

std::string News(uint32_t stream, uint64_t news) {
  GroupExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(1);
  reply.news = news;
  reply.standing = GroupStanding::kWaiting;
  return Answer(stream, fields::Encode(reply));
}
std::string Silence(uint32_t) {
  return "";
}
RawMaster::Reply Refuses(const std::string& status) {
  return {[status](uint32_t s) { return Begin(s) + Trailers(s, status); }};
}

/// A member's exchanges on a loop that runs when the test says so.
class MasterExchangesTest : public ::testing::Test {
 protected:
  void Start(const std::string& address) {
    desk_.Look([](DeskContents& desk) {
      desk.core.emplace(sdk::MemberCore::Options{.worker = "a", .incarnation = 1});
    });
    desk_.Open({.post = [this] { posted_ = true; }, .on_run = [](sdk::StepRunNumber) {}});
    exchanges_.emplace(MasterExchanges::Options{
        .loop = &loop_,
        .desk = &desk_,
        .master_address = address,
        .job = {},
        .tls = {},
        .data_root = "",
        .progress = [] { return MasterExchanges::Progress(); },
        .leaving = [this] { return leaving_; },
        .judge_absence =
            [this](const absl::Status& answer) { return answer.ok() ? absl::OkStatus() : away_; }});
  }
  ~MasterExchangesTest() override {
    exchanges_.reset();
    loop_.restart();
    loop_.poll();
  }
  /// Runs the loop until the desk is so.
  template <typename Holds>
  void RunUntil(Holds holds) {
    while (!desk_.Look(holds)) {
      if (std::exchange(posted_, false)) {
        desk_.TakeOrders();
        exchanges_->Look();
      }
      loop_.run_one();
    }
  }

  boost::asio::io_context loop_;
  MemberDesk desk_{[](const absl::Status&) {}};
  std::optional<MasterExchanges> exchanges_;
  absl::Status away_;
  bool leaving_ = false;
  bool posted_ = false;
};

TEST_F(MasterExchangesTest, NewsOvertakesTheCallThatTheMasterKeeps) {
  RawMaster master({{[](uint32_t s) { return News(s, 1); }}, {Silence}, {[](uint32_t s) {
                      return News(s, 2);
                    }}});
  Start(master.address());
  RunUntil([](DeskContents& desk) { return desk.core->view().news == 1; });
  // The second call is kept. That this member leaves is said by another one.
  RunUntil([](DeskContents& desk) { return desk.calls == 1; });
  desk_.Tell([](DeskContents& desk) { desk.core->Leave(); });
  RunUntil([](DeskContents& desk) { return desk.core->view().news == 2; });
  EXPECT_EQ(master.requests(), 3);
  EXPECT_EQ(master.connections(), 1);
}

TEST_F(MasterExchangesTest, AMasterThatRefusesTheMemberFailsTheGroup) {
  RawMaster master({Refuses("3")});
  Start(master.address());
  RunUntil([](DeskContents& desk) { return desk.over(); });
  EXPECT_THAT(desk_.Look([](DeskContents& desk) { return std::string(desk.failure.message()); }),
              HasSubstr("the master refuses this member"));
}

TEST_F(MasterExchangesTest, AnErrorThatMayPassIsToldInWaitingLinesAndTriedAgain) {
  RawMaster master({Refuses("14"), {[](uint32_t s) { return News(s, 1); }}});
  Start(master.address());
  RunUntil([](DeskContents& desk) { return !desk.trouble.empty(); });
  RunUntil([](DeskContents& desk) { return desk.core->view().news == 1; });
  EXPECT_TRUE(desk_.Look([](DeskContents& desk) { return desk.trouble.empty(); }));
}

TEST_F(MasterExchangesTest, AMasterThatIsAwayForTooLongFailsTheGroup) {
  away_ = absl::UnavailableError("away for an hour");
  Start("127.0.0.1:1");
  RunUntil([](DeskContents& desk) { return desk.over(); });
  EXPECT_EQ(desk_.Look([](DeskContents& desk) { return desk.failure; }), away_);
}

TEST_F(MasterExchangesTest, AFarewellIsSaidToAMasterThatKnowsTheMember) {
  RawMaster master({{[](uint32_t s) { return News(s, 1); }},
                    {[](uint32_t s) { return News(s, 2); }},
                    {Silence}});
  Start(master.address());
  RunUntil([](DeskContents& desk) { return desk.core->view().news == 2; });
  bool said = false;
  exchanges_->SayFarewell([&] { said = true; });
  // The master keeps silent: the process does not wait for long.
  while (!said) loop_.run_one();
}

}  // namespace
}  // namespace muster::internal
