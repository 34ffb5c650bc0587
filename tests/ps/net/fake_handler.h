#pragma once

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "ps/net/frame_handler.h"

namespace muster::ps::testing {

/// Serves tables of width kDim whose row `key` is {key, key, ...}; remembers what was pushed.
/// Partition 13 belongs to another server. Parts of a push are a slice each; none ends while `hold`
/// is set.
class FakeHandler final : public FrameHandler {
 public:
  static constexpr size_t kDim = 4;

  absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello& hello) override {
    if (hello.job != "job") {
      return absl::FailedPreconditionError(
          fmt::format("this server belongs to job \"job\", not to \"{}\"", hello.job));
    }
    return wire::HelloReply{
        .server_incarnation = 7, .partition_count = 16, .lane = 1, .lane_count = 2};
  }

  Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) override {
    if (slice.abandoned) return Progress::kDone;
    ++pulls;
    std::vector<float> rows;
    size_t at = 0;
    for (const wire::Part& part : request.parts) {
      const bool owned = part.partition != 13;
      reply->parts.push_back({.partition = part.partition,
                              .code = owned ? wire::PartCode::kOk : wire::PartCode::kWrongOwner});
      for (const wire::Group& group : part.groups) {
        for (uint32_t i = 0; i < group.keys; ++i, ++at) {
          if (owned) rows.insert(rows.end(), kDim, static_cast<float>(request.keys[at]));
        }
      }
    }
    if (reply->values.Resize(rows.size() * sizeof(float))) {
      pulls_in_place += reply->values.lent();
      std::copy(rows.begin(), rows.end(), reply->values.floats().begin());
    }
    reply->text = pull_text;
    return Progress::kDone;
  }

  Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) override {
    if (slice.abandoned) {
      for (const float value : request.values) abandoned_sum += value;
      ++abandoned;
      return Progress::kDone;
    }
    ++push_slices;
    if (hold) return Progress::kMore;
    if (const size_t next = reply->parts.size(); next < request.parts.size()) {
      reply->parts.push_back({.partition = request.parts[next].partition});
      const wire::Part part = request.parts[next];
      pushed.push_back(request.push);
      pushed_parts.Add(part.partition, part.owner_epoch);
      for (const wire::Group& group : part.groups) pushed_parts.AddGroup(group);
    }
    if (reply->parts.size() < request.parts.size()) return Progress::kMore;
    pushed_keys.insert(pushed_keys.end(), request.keys.begin(), request.keys.end());
    pushed_values.insert(pushed_values.end(), request.values.begin(), request.values.end());
    reply->text = "pushed";
    if (refuse_pushes) {
      for (wire::PartReply& part : reply->parts) part.code = wire::PartCode::kBadRequest;
      reply->text = "row 7 is not finite";
    }
    return Progress::kDone;
  }

  void OnServed(const ServedRequest& request, RequestNotes* /*notes*/) override {
    served.push_back(request);
  }

  void OnRefused(const Refusal& refusal) override { refused.push_back(refusal); }

  int pulls = 0;
  int pulls_in_place = 0;  // whose rows went straight to where the peer reads them
  std::atomic<bool> hold = false;
  std::atomic<int> push_slices = 0;
  std::atomic<int> abandoned = 0;
  double abandoned_sum = 0;  // of the values of such pushes
  std::vector<Refusal> refused;
  std::string pull_text;       // as refuse_pushes
  bool refuse_pushes = false;  // set it before the lane starts, or on its thread
  std::vector<ServedRequest> served;
  std::vector<wire::PushIdentity> pushed;  // of every part
  wire::Parts pushed_parts;
  std::vector<uint64_t> pushed_keys;
  std::vector<float> pushed_values;
};

}  // namespace muster::ps::testing
