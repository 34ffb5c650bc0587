#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/planted_bug.h"
#include "base/work_limit.h"
#include "ps/core/lane_state.h"
#include "ps/core/lane_tables.h"
#include "ps/core/lane_traffic.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"
#include "ps/engine/partition.h"
#include "ps/engine/push_ahead.h"

namespace muster::ps {

/// Serves pushes, and questions, into the lane's partitions. A part of OwnedPartitions, of the
/// lane's thread.
///
/// **A part in slices.** A part may be as large as a whole request, so slices end within parts,
/// too. The partition then holds half of it, and until it is whole no other push and no image gets
/// there: the push waits for its next slice, the image is looked for anew when the part is whole.
/// What does not look at the rows goes on: an OWN that keeps the state, acceptances, forgetting, a
/// new table; for them the part counts as applied from its first row on, and it is brought to its
/// end whatever becomes of its connection. An OWN that takes the state away takes the half part
/// with it. So nobody ever sees half a part but pulls, whose rows are promised one by one.
class Pushes {
 public:
  /// All outlive this.
  Pushes(LaneState* lane, const LaneTables* tables, LaneTraffic* traffic)
      : lane_(lane), tables_(tables), traffic_(traffic) {}

  /// One slice of a push; see FrameHandler. `progress` is the request's own.
  Progress Serve(const PushRequest& request, const Slice& slice, PushReply* reply,
                 RequestProgress* progress);
  /// Whether a part was answered by its partition in the newest call: it holds no half of it.
  bool part_whole() const { return part_whole_; }

 private:
  static bool MayBeLeft(const RequestProgress& progress);
  void Begin(const PushRequest& request, PushReply* reply, RequestProgress* progress);
  /// Asks for what the parts to come will need; see PushAhead.
  void LookAhead(const PushRequest& request);
  /// One part, or as much of it as the slice allows: absent, then.
  std::optional<wire::PartReply> ServePart(const PushRequest& request, const Slice& slice,
                                           PushReply* reply, RequestProgress* progress);
  MUSTER_PLANTED_BODY(bool AppliesTablesAlone(Slot* slot));
  std::optional<ApplyResult> Apply(Slot* slot, const PushRequest& request, WorkLimit* work,
                                   RequestProgress* progress);
  wire::PartReply AnswerOf(const Slot& slot, const wire::Part& part, const ApplyResult& result,
                           std::string* text, RequestProgress* progress);

  LaneState* const lane_;
  const LaneTables* const tables_;
  LaneTraffic* const traffic_;
  PushAhead ahead_;
  size_t ahead_part_ = 0, ahead_keys_ = 0;  // that it was told of, in the request served now
  bool part_whole_ = false;
  Part part_;  // reused between pushes
};

}  // namespace muster::ps
