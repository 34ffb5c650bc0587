#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "kubernetes/model/watch_cache.h"
#include "kubernetes/pods/pod_book.h"
#include "tests/kubernetes/pods/model_cluster.h"

namespace muster::testing {

/// One pod with a container "muster", as a template.
nlohmann::json MinimalTemplate();
kubernetes::PodRun TestRun();

/// What an API server does with a call, and what it answers.
kubernetes::PodAnswer Carry(const kubernetes::PodCall& call, ModelCluster* cluster);

/// A PodBook whose calls are carried out and whose watch is read when a test says so.
class ScriptedBook {
 public:
  explicit ScriptedBook(ModelCluster* cluster, kubernetes::PodBookOptions options = {})
      : cluster_(cluster), book_([&] {
          options.run = TestRun();
          return options;
        }()) {}

  /// Everything that follows by itself, without time: calls, answers and events of the watch.
  void Settle();
  void Pass(std::chrono::milliseconds time) {
    now += time;
    book_.OnTime(now);
    Settle();
  }
  /// The calls so far that were not carried out.
  std::deque<kubernetes::PodCall>& calls();
  void CarryNext(bool answer_is_lost = false);
  void ReadWatch(size_t events_max = SIZE_MAX);
  /// What a list shows now, for a new scaler.
  std::vector<FoundNode> Find();
  std::vector<HostReport> Reports();
  std::vector<std::string> Notes() { return book_.TakeNotes(); }

  kubernetes::PodBook& book() { return book_; }
  TimePoint now{std::chrono::seconds(1000)};
  uint64_t carried = 0;

 private:
  void Feed(const kubernetes::WatchCache::Changes& changes);

  ModelCluster* const cluster_;
  kubernetes::PodBook book_;
  kubernetes::WatchCache cache_;
  size_t next_event_ = 0;
  std::deque<kubernetes::PodCall> calls_;
};

/// "start worker-0", "exit worker-0 SIGKILL", "held worker-0 2 ..." in order.
std::vector<std::string> Texts(const std::vector<HostReport>& reports);

}  // namespace muster::testing
