#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/words/limits.h"
#include "proto/messages/worker_control.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {

/// The servers to which this worker has not been able to connect for some seconds, for the master:
/// a server may advertise an address that nobody can reach. Pure; not thread-safe.
class UnreachableServers {
 public:
  /// A server that has just been killed or started is not reported.
  static constexpr std::chrono::seconds kReportAfter{5};

  void OnCannotConnect(const LaneAddress& lane, std::string_view why, TimePoint now) {
    const auto [entry, first] = lanes_.try_emplace(lane);
    if (first) entry->second.since = now;
    entry->second.why = std::string(why.substr(0, most::kNameBytes));
  }
  void OnConnected(const LaneAddress& lane) { lanes_.erase(lane); }
  /// Forgets the processes that are not in the list.
  void OnServers(const std::vector<ServerEndpoint>& servers) {
    std::erase_if(lanes_, [&](const auto& entry) {
      for (const ServerEndpoint& server : servers) {
        if (server.id == entry.first.server && server.incarnation == entry.first.incarnation) {
          return false;
        }
      }
      return true;
    });
  }
  std::vector<UnreachableServer> Report(TimePoint now) const {
    std::vector<UnreachableServer> report;
    for (const auto& [lane, trouble] : lanes_) {
      if (now - trouble.since < kReportAfter || report.size() >= kUnreachablePerCallMax) continue;
      if (!report.empty() && report.back().server == lane.server) continue;  // another lane of it
      report.push_back({lane.server, lane.incarnation, trouble.why});
    }
    return report;
  }

 private:
  struct Trouble {
    TimePoint since;
    std::string why;
  };
  std::map<LaneAddress, Trouble> lanes_;
};

}  // namespace muster::sdk
