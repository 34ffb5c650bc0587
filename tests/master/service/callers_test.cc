#include "master/service/callers.h"

#include <set>
#include <utility>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(CallersTest, EachRoleMayCallItsOwnService) {
  const std::set<std::pair<Role, MasterService>> allowed = {
      {Role::kWorker, MasterService::kWorkers},
      {Role::kServer, MasterService::kServers},
      {Role::kScaler, MasterService::kAdmin},
      {Role::kOperator, MasterService::kAdmin}};
  for (const Role role : kRoles) {
    for (const MasterService service :
         {MasterService::kWorkers, MasterService::kServers, MasterService::kAdmin}) {
      EXPECT_EQ(MayCall(role, service), allowed.contains({role, service}))
          << RoleWord(role) << " " << static_cast<int>(service);
    }
  }
}

TEST(CallersTest, ARefusalSaysWhoAndWhat) {
  EXPECT_THAT(CheckRole({"j", Role::kWorker, "worker"}, "j", MasterService::kWorkers), IsOk());
  EXPECT_THAT(CheckRole({"j", Role::kWorker, "worker"}, "j", MasterService::kAdmin),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("muster://j/worker/worker"), HasSubstr("role worker"),
                             HasSubstr("for orders and questions"))));
  EXPECT_THAT(CheckRole({"k", Role::kWorker, "worker"}, "j", MasterService::kWorkers),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("but this job is j")));
}

TEST(CallersTest, AMachineThatJoinsMayDoWhatItsNodesNeed) {
  const NodeRole worker = NodeRole::kWorker;
  EXPECT_THAT(CheckJoiner(worker, {.joiners = true}), testing::IsOk());
  EXPECT_THAT(CheckJoiner(worker, {.joiners = true, .role = worker}), testing::IsOk());
  EXPECT_THAT(CheckJoiner(worker, {.joiners = true, .role = NodeRole::kServer}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("scaler/join-worker")));
  EXPECT_THAT(CheckJoiner(NodeRole::kServer, {}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("scaler/join-ps")));
}

}  // namespace
}  // namespace muster
