#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/work_limit.h"
#include "ps/core/lane_state.h"
#include "ps/core/lane_tables.h"
#include "ps/core/lane_traffic.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"
#include "ps/engine/partition.h"
#include "ps/engine/push_ahead.h"

namespace muster::ps {

/// Serves pushes, and questions about pushes, to the lane's partitions. A part of OwnedPartitions;
/// only the lane's thread uses it.
///
/// **A part in slices.** A part may be as large as a whole request, so a slice may end inside a
/// part. The partition then has half of the part. Until the part is complete, no other push and no
/// image may use the partition: another push waits for its next slice, and an image begins after
/// the part.
///
/// Calls that do not use the rows continue: an OWN that keeps the state, acceptances, forgetting, a
/// new table. For them, the part counts as applied from its first row on. It is always completed,
/// even if its connection ends. An OWN that drops the state drops the half part with it. So only
/// pulls may see half a part; they promise single rows, not whole parts.
class Pushes {
 public:
  /// All of them must outlive this object.
  Pushes(LaneState* lane, const LaneTables* tables, LaneTraffic* traffic)
      : lane_(lane), tables_(tables), traffic_(traffic), ahead_(lane) {}

  /// Serves one slice of a push; see FrameHandler. Each request has its own `progress`.
  Progress Serve(const PushRequest& request, const Slice& slice, PushReply* reply,
                 RequestProgress* progress);
  /// True if a partition completed a part in the newest call, so that it has no half part now.
  bool part_whole() const { return part_whole_; }

 private:
  /// Announces the groups of the present request, of all its parts.
  class Ahead final : public PushAhead {
   public:
    explicit Ahead(LaneState* lane) : lane_(lane) {}
    /// Begins with a group of a part; `keys` of the request belong to the parts before it.
    void Begin(const PushRequest& request, size_t part, size_t group, size_t keys);
    void Refill() override;

   private:
    void EnterPart();

    LaneState* const lane_;
    const PushRequest* request_ = nullptr;
    ShardId shard_;
    // The next group to announce, and the position of its keys.
    size_t part_ = 0, group_ = 0, keys_ = 0;
    std::span<const wire::Group> groups_;  // of its part
    const Partition* partition_ = nullptr;
  };

  void Begin(const PushRequest& request, PushReply* reply, RequestProgress* progress);
  /// Applies one part, or as much of it as the slice allows. The result is absent if the part is
  /// not complete.
  std::optional<wire::PartReply> ServePart(const PushRequest& request, const Slice& slice,
                                           PushReply* reply, RequestProgress* progress);
  std::optional<ApplyResult> Apply(Slot* slot, const PushRequest& request, const Slice& slice,
                                   RequestProgress* progress);
  wire::PartReply AnswerOf(const Slot& slot, const wire::Part& part, const ApplyResult& result,
                           std::string* text, RequestProgress* progress);

  LaneState* const lane_;
  const LaneTables* const tables_;
  LaneTraffic* const traffic_;
  Ahead ahead_;
  bool part_whole_ = false;
  Part part_;  // reused between pushes
};

}  // namespace muster::ps
