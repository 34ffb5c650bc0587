#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "collectives/listener.h"
#include "collectives/reducer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::collectives::testing {

/// What other threads report, and a wait for it.
template <typename T>
class Reports {
 public:
  void Put(T report) {
    const MutexLock lock(&mutex_);
    reports_.push_back(std::move(report));
    changed_.SignalAll();
  }
  /// The first `count` of them.
  std::vector<T> Await(size_t count) {
    const MutexLock lock(&mutex_);
    while (reports_.size() < count) changed_.Wait(&mutex_);
    return reports_;
  }
  size_t size() {
    const MutexLock lock(&mutex_);
    return reports_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<T> reports_ MUSTER_GUARDED_BY(mutex_);
};

struct Answer {
  absl::Status status;
  uint32_t crc = 0;
};

/// The members of a group in one process, each with a listener of its own.
class Group {
 public:
  /// `adapt` changes the options of a member's listener.
  explicit Group(uint32_t count, std::function<void(uint32_t, ListenerOptions*)> adapt = {}) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      ListenerOptions options;
      options.job_id = "id-1";
      options.worker = "worker-" + std::to_string(rank);
      options.incarnation = 100 + rank;
      options.unix_path = dir_.File("m" + std::to_string(rank));
      options.host = "";
      if (adapt) adapt(rank, &options);
      auto listener = Listener::Start(options);
      MUSTER_CHECK_MSG(listener.ok(), Message(listener.status()));
      members_.push_back({options.worker, options.incarnation, (*listener)->addresses()});
      listeners_.push_back(*std::move(listener));
    }
    reducers_.resize(count);
    for (uint32_t rank = 0; rank < count; ++rank) {
      suspects_.push_back(std::make_unique<Reports<SuspectedMember>>());
    }
  }

  /// Begins an attempt at one member; `adapt` changes its options.
  Reducer* Start(uint32_t rank, uint64_t attempt,
                 const std::function<void(ReducerOptions*)>& adapt = {}) {
    reducers_[rank] = nullptr;
    ReducerOptions options;
    options.lineage = LineageNumber(1);
    options.attempt = AttemptNumber(attempt);
    options.rank = rank;
    options.members = members_;
    options.connect_timeout = std::chrono::seconds(60);
    options.listener = listeners_[rank].get();
    if (adapt) adapt(&options);
    Reports<SuspectedMember>* const into = suspects_[rank].get();
    reducers_[rank] =
        Reducer::Start(std::move(options), [into](SuspectedMember who) { into->Put(who); });
    return reducers_[rank].get();
  }
  void StartAll(uint64_t attempt) {
    for (uint32_t rank = 0; rank < members_.size(); ++rank) Start(rank, attempt);
  }
  /// Ends the attempt at one member.
  void Stop(uint32_t rank) { reducers_[rank] = nullptr; }

  Reducer& reducer(uint32_t rank) { return *reducers_[rank]; }
  Listener* listener(uint32_t rank) { return listeners_[rank].get(); }
  std::vector<GroupMember>& members() { return members_; }
  Reports<SuspectedMember>& suspects(uint32_t rank) { return *suspects_[rank]; }
  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }

 private:
  muster::testing::TempDir dir_;
  std::vector<GroupMember> members_;
  std::vector<std::unique_ptr<Reports<SuspectedMember>>> suspects_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Reducer>> reducers_;
};

/// One bucket of one member.
template <typename T>
struct Bucket {
  explicit Bucket(size_t elements) : in(elements), out(elements) {}
  void Sum(Reducer* reducer, GroupDtype dtype, uint64_t step, uint32_t number) {
    reducer->Sum(StepNumber(step), number, dtype, std::as_bytes(std::span(in)),
                 std::as_writable_bytes(std::span(out)),
                 [this](absl::Status status, uint32_t crc) { answers.Put({status, crc}); });
  }
  std::vector<T> in, out;
  Reports<Answer> answers;
};

}  // namespace muster::collectives::testing
