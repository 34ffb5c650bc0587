#pragma once

#include <cstdint>
#include <vector>

#include "ps/core/lane_state.h"
#include "ps/core/lane_tables.h"
#include "ps/core/lane_traffic.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"
#include "ps/engine/row_gather.h"

namespace muster::ps {

/// Serves pulls from the lane's partitions. A part of OwnedPartitions; only the lane's thread uses
/// it.
class Pulls {
 public:
  /// All of them must outlive this object. `reply_bytes_max` limits the bytes of the rows in one
  /// reply.
  Pulls(LaneState* lane, const LaneTables* tables, LaneTraffic* traffic, uint64_t reply_bytes_max)
      : lane_(lane), tables_(tables), traffic_(traffic), reply_bytes_max_(reply_bytes_max) {}

  /// Serves one slice of a pull; see FrameHandler. Each request has its own `progress`.
  Progress Serve(const PullRequest& request, const Slice& slice, PullReply* reply,
                 RequestProgress* progress);

 private:
  void Begin(const PullRequest& request, PullReply* reply);
  /// Finds which groups of an admitted part the worker already has, and how many floats the others
  /// need. The returned code is kOk, or says why the part is refused.
  wire::PartCode BeginPart(const wire::Part& part, uint64_t floats_before, PullReply* reply,
                           uint64_t* floats);
  /// Collects the groups that the engine gets at once. A refused part has one group without rows.
  void CollectGroups(const PullRequest& request, PullReply* reply, const RequestProgress& progress);
  /// Call this when a group is complete. The reply keeps the version that was noted at the group's
  /// begin if it is still the version of the table, or else has no version.
  static void SettleVersion(const PullGroup& group, const wire::Group& asked, PullReply* reply,
                            RequestProgress* progress);
  /// Returns false if a part's rows do not fit the encoding. The parts after it then count as not
  /// gathered.
  bool FinishGroups(const PullRequest& request, const Gathered& gathered, PullReply* reply,
                    RequestProgress* progress);
  void FinishPart(wire::PartCode code, const PullRequest& request, PullReply* reply,
                  RequestProgress* progress);

  LaneState* const lane_;
  const LaneTables* const tables_;
  LaneTraffic* const traffic_;
  const uint64_t reply_bytes_max_;
  std::vector<PullGroup> groups_;  // reused between pulls
};

}  // namespace muster::ps
