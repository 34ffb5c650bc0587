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
  /// All outlive this. `reply_bytes_max`: of the rows in one reply.
  Pulls(LaneState* lane, const LaneTables* tables, LaneTraffic* traffic, uint64_t reply_bytes_max)
      : lane_(lane), tables_(tables), traffic_(traffic), reply_bytes_max_(reply_bytes_max) {}

  /// One slice of a pull; see FrameHandler. `progress` is the request's own.
  Progress Serve(const PullRequest& request, const Slice& slice, PullReply* reply,
                 RequestProgress* progress);

 private:
  void Begin(const PullRequest& request, PullReply* reply);
  /// Finds which groups of an admitted part the worker already has, and the bytes of the others.
  /// The
  /// code is OK, or says why not.
  wire::PartCode BeginPart(const wire::Part& part, uint64_t floats_before, PullReply* reply,
                           uint64_t* floats);
  /// The groups that the engine gets at once. A refused part has one group without rows.
  void CollectGroups(const PullRequest& request, PullReply* reply, const RequestProgress& progress);
  /// A group is complete. Its rows have the version noted when they were begun, or no version.
  static void SettleVersion(const PullGroup& group, const wire::Group& asked, PullReply* reply,
                            RequestProgress* progress);
  /// False if a part's rows do not fit the encoding; the parts after it then count as not gathered.
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
