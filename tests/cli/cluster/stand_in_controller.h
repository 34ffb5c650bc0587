#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "tests/cli/cluster/fake_cluster.h"

namespace muster::cluster {

/// Does to the Job "ads" of a FakeCluster what Kubernetes' Job controller does when its pods die:
/// counts them, and makes the next one when the back-off is over.
class StandInController {
 public:
  explicit StandInController(FakeCluster* fake) : fake_(fake) {
    fake_->Put("jobs/ads", {{"metadata", {{"name", "ads"}, {"uid", "u"}}}});
    MakePod();
  }

  /// The pod's container ends with this code.
  void EndPod(WallTime at) {
    nlohmann::json pod = fake_->At(place_);
    pod["status"] = {
        {"phase", "Failed"},
        {"containerStatuses",
         nlohmann::json::array(
             {{{"name", "muster"},
               {"state", {{"terminated", {{"exitCode", 1}, {"finishedAt", Text(at)}}}}}}})}};
    fake_->Put(place_, pod);
    nlohmann::json job = fake_->At("jobs/ads");
    job["status"]["failed"] = ++deaths_;
    fake_->Put("jobs/ads", job);
    ended_ = at;
  }
  /// True if it makes the next pod at this time.
  bool Sync(WallTime at) {
    constexpr int kWaits[] = {10, 20, 40, 80, 160, 320, 600};
    const int wait =
        kWaits[std::min<size_t>(static_cast<size_t>(deaths_ - 1), std::size(kWaits) - 1)];
    if (at < ended_ + std::chrono::seconds(wait)) return false;
    MakePod();
    return true;
  }

  static std::string Text(WallTime at) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(seconds)));
  }

 private:
  void MakePod() {
    const std::string name = fmt::format("ads-{}", deaths_);
    place_ = "pods/" + name;
    fake_->Put(
        place_,
        {{"metadata",
          {{"name", name},
           {"creationTimestamp", Text(ended_)},
           {"labels", {{"muster/job", "ads"}, {"muster/role", "master"}}}}},
         {"spec",
          {{"containers", nlohmann::json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
         {"status",
          {{"phase", "Running"},
           {"containerStatuses",
            nlohmann::json::array(
                {{{"name", "muster"}, {"state", {{"running", nlohmann::json::object()}}}}})}}}});
  }

  FakeCluster* const fake_;
  std::string place_;
  int64_t deaths_ = 0;
  WallTime ended_{};
};

}  // namespace muster::cluster
