#pragma once

#include <fmt/format.h>

#include <vector>

#include "ps/net/frame_handler.h"

namespace muster::ps::testing {

/// Serves tables of width kDim whose row `key` is {key, key, ...}; remembers what was pushed.
/// Partition 13 is somebody else's.
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

  void OnPull(const PullRequest& request, PullReply* reply) override {
    ++pulls;
    std::vector<float> rows;
    size_t at = 0;
    for (const wire::PullPart& part : request.parts) {
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
      std::copy(rows.begin(), rows.end(), reply->values.floats().begin());
    }
  }

  void OnPush(const PushRequest& request, PushReply* reply) override {
    for (const wire::PushPart& part : request.parts) {
      reply->parts.push_back({.partition = part.partition});
      pushed_parts.push_back(part);
    }
    pushed_keys.insert(pushed_keys.end(), request.keys.begin(), request.keys.end());
    pushed_values.insert(pushed_values.end(), request.values.begin(), request.values.end());
    reply->text = "pushed";
    if (refuse_pushes) {
      for (wire::PartReply& part : reply->parts) part.code = wire::PartCode::kBadRequest;
      reply->text = "row 7 is not finite";
    }
  }

  void OnServed(const ServedRequest& request) override { served.push_back(request); }

  void OnRefused(const Refusal& refusal) override { refused.push_back(refusal); }

  int pulls = 0;
  std::vector<Refusal> refused;
  bool refuse_pushes = false;  // set it before the lane starts, or on its thread
  std::vector<ServedRequest> served;
  std::vector<wire::PushPart> pushed_parts;
  std::vector<uint64_t> pushed_keys;
  std::vector<float> pushed_values;
};

}  // namespace muster::ps::testing
