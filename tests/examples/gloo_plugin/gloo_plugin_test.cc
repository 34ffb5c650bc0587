// The plugin of examples/gloo_plugin, as a group's members load it.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>

#include "collectives/backends/plugin_backend.h"
#include "tests/collectives/backends/signal.h"
#include "tests/support/status_matchers.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;
using testing::Signal;

/// Members of one communicator, each a thread.
TEST(GlooPluginTest, GlooAddsForItsMembers) {
  constexpr uint32_t kMembers = 3;
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Backend> gloo, OpenPlugin(MUSTER_GLOO_PLUGIN));
  EXPECT_EQ(gloo->name(), "Gloo");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> id, gloo->NewId());
  const Signal signal;
  std::vector<std::future<absl::Status>> threads;
  std::vector<std::vector<int64_t>> sums(kMembers);
  for (uint32_t rank = 0; rank < kMembers; ++rank) {
    threads.push_back(std::async(std::launch::async, [&, rank]() -> absl::Status {
      MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> member,
                              gloo->Connect(id, {rank, kMembers}, &signal));
      for (const size_t count : {size_t{1}, size_t{100'000}}) {
        MUSTER_ASSIGN_OR_RETURN(const std::span<std::byte> buffer,
                                member->Buffer(count * sizeof(int64_t)));
        auto* const values = reinterpret_cast<int64_t*>(buffer.data());
        std::fill_n(values, count, int64_t{rank} - 7);
        MUSTER_RETURN_IF_ERROR(member->Sum(SumType::kInt64, buffer));
        sums[rank].insert(sums[rank].end(), values, values + count);
      }
      return absl::OkStatus();
    }));
  }
  for (std::future<absl::Status>& thread : threads) EXPECT_THAT(thread.get(), IsOk());
  for (const std::vector<int64_t>& sum : sums) {
    EXPECT_EQ(sum, std::vector<int64_t>(100'001, 0 + 1 + 2 - 3 * 7));
  }
}

TEST(GlooPluginTest, AnAbortEndsAConnectOfGloo) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Backend> gloo, OpenPlugin(MUSTER_GLOO_PLUGIN));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> id, gloo->NewId());
  Signal signal;
  auto connecting =
      std::async(std::launch::async, [&] { return gloo->Connect(id, {0, 2}, &signal).status(); });
  signal.Set();
  EXPECT_THAT(connecting.get(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the attempt is over")));
}

}  // namespace
}  // namespace muster::collectives
