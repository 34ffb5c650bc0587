#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scaler/decision/decider.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {

/// The whole way from views to events and orders, over a job that does what it is told.
class DeciderTest : public ::testing::Test {
 protected:
  void Begin(const Decider::Options& options = {}) {
    decider_ = std::make_unique<Decider>(options, [this](rest::Event event) {
      event.id = events_.size() + 1;
      event.wall_us = static_cast<uint64_t>(Wall().count());
      events_.push_back(event);
      return event;
    });
  }
  /// Wall time goes as the job's does.
  WallTime Wall() const {
    return std::chrono::duration_cast<WallTime>(job_.view.now.time_since_epoch());
  }
  /// A second goes by; what is ordered is done.
  std::vector<Ordered> Second() {
    job_.Tick();
    for (NodeView& node : job_.view.nodes) {
      const double limit = static_cast<double>(node.limits.memory_bytes) / kMiB;
      if (node.state == NodeState::kRunning && limit > 0 &&
          job_.loads[node.name].memory_mib > limit) {
        job_.End(node.name, EndCause::kKernelOutOfMemory);
      }
    }
    const JobView view = job_.view;
    for (const NodeEnd& end : view.ends) job_.Count(end);
    job_.view.ends.clear();
    job_.view.taken.clear();
    std::vector<Ordered> orders = decider_->Step(view);
    for (const Ordered& ordered : orders) {
      EXPECT_LE(ordered.event_id, events_.size()) << "told before it is ordered";
      CarryOut(ordered);
    }
    for (NodeView& node : job_.view.nodes) {
      if (node.state == NodeState::kExited && restart_) job_.Start(node.name);
    }
    return orders;
  }
  void CarryOut(const Ordered& ordered) {
    if (const auto* limit = std::get_if<ResizeNode>(&ordered.order)) {
      Resources& limits = job_.Node(limit->node).limits;
      limits = limit->After(limits);
    }
    if (const auto* restart = std::get_if<RestartNode>(&ordered.order)) {
      if (restart->limits) job_.Node(restart->node).limits = *restart->limits;
      if (job_.Node(restart->node).state == NodeState::kRunning) {
        job_.End(restart->node, EndCause::kAsked);
      }
    }
    job_.view.taken.push_back(ordered.taken.value());
  }
  /// A person's wish, which is granted.
  Decider::Taken Take(Order order, const HumanFacts& facts, const std::string& reason = "") {
    const auto granted = Judge({std::move(order), reason}, job_.view, facts);
    EXPECT_TRUE(granted.ok()) << granted.status();
    return decider_->Take(granted.value(), job_.view);
  }
  std::vector<Ordered> Seconds(int seconds) {
    std::vector<Ordered> all;
    for (int i = 0; i < seconds; ++i) {
      for (Ordered& ordered : Second()) all.push_back(std::move(ordered));
    }
    return all;
  }
  /// "kind policy target action -> cause verdict" of each event.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const rest::Event& event : events_) {
      told.push_back(fmt::format("{} {}{}{}{}{}", event.kind,
                                 event.policy.empty() ? "" : event.policy + " ", event.target,
                                 event.action.empty() ? "" : " " + event.action,
                                 event.cause_id == 0 ? "" : fmt::format(" <- {}", event.cause_id),
                                 event.verdict.empty() ? "" : " " + event.verdict));
    }
    return told;
  }
  rest::Policy PolicyNamed(const std::string& name) const {
    for (const rest::Policy& policy : decider_->policies()) {
      if (policy.name == name) return policy;
    }
    ADD_FAILURE() << name;
    return {};
  }

  FakeJob job_ = FakeJob()
                     .Add(NodeRole::kServer, 2, {.memory_mib = 300}, {.memory_bytes = 512 * kMiB})
                     .Add(NodeRole::kWorker, 3);
  std::vector<rest::Event> events_;
  std::unique_ptr<Decider> decider_;
  bool restart_ = true;
};

}  // namespace muster::scaler
