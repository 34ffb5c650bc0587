#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/clock.h"
#include "benchmarks/thread_cpu.h"
#include "master/core/group_commit.h"
#include "master/core/master_core.h"
#include "master/journal/journal.h"
#include "master/sources/source_catalog.h"
#include "proto/fields/generated.h"

namespace muster {

/// What the master's owner thread has spent, and on what.
struct OwnerCosts {
  using Time = std::chrono::nanoseconds;
  /// Steps of the core, its ticks, and what they leave for the journal.
  Time core{0};
  Time journal{0};
  /// Of the journal by the wall: the disk's as well.
  Time journal_wall{0};
  /// Encoding the replies. The real master does that on other threads, so it is no cost of the
  /// owner. Handing the replies over to the threads that do it is not counted, and neither is what
  /// gRPC does.
  Time answer{0};
  uint64_t calls = 0;
  uint64_t reply_bytes = 0;
  /// The longest step of all, and whose it was.
  Time largest{0};
  std::string largest_what;

  /// Of the owner's thread.
  Time cpu() const { return core + journal; }
  /// How long the thread was busy, or waited for the disk.
  Time busy() const { return cpu() - journal + journal_wall; }
};
OwnerCosts operator-(const OwnerCosts& later, const OwnerCosts& earlier);

/// What an exchange of a worker is answered with.
struct WorkerAnswer {
  WorkerExchangeReply reply;
  /// Null: its map is current.
  std::shared_ptr<const MapNews> map;
};

/// What the master's owner thread does, on the calling thread: the real core, group commit and
/// journal, with a clock by hand. Every reply is turned into bytes too, which is counted apart.
/// There is no network, so the caller gets the reply as a value. Not thread-safe.
class MeasuredOwner {
 public:
  /// Begins where the journal in `folder` ends. `sources` outlives it.
  MeasuredOwner(const CoreOptions& options, const std::string& folder, const SourceCatalog* sources,
                TimePoint now);

  /// Asks in the next turn. `bytes_of` turns the reply into bytes and says how many. `told` gets
  /// the reply after the turn; an error ends the program.
  template <typename Reply>
  void Ask(const char* what, std::function<absl::StatusOr<Reply>(MasterCore&, StepTime)> step,
           std::function<size_t(Reply&)> bytes_of, std::function<void(const Reply&)> told) {
    auto reply = std::make_shared<Reply>();
    GroupCommit::Item item;
    item.step = [=, this, step = std::move(step)](MasterCore& core, StepTime at) -> absl::Status {
      const auto began = ThreadCpu();
      absl::StatusOr<Reply> made = step(core, at);
      Count(what, ThreadCpu() - began);
      MUSTER_CHECK_MSG(made.ok(), made.status().ToString());
      *reply = *std::move(made);
      return absl::OkStatus();
    };
    item.answer = [=, this, bytes_of = std::move(bytes_of)](const absl::Status&) {
      costs_.reply_bytes += bytes_of(*reply);
    };
    items_.push_back(std::move(item));
    told_.push_back([=, told = std::move(told)] { told(*reply); });
  }
  void AskWorker(const WorkerExchangeRequest& request,
                 std::function<void(const WorkerAnswer&)> told);
  void AskServer(const ServerExchangeRequest& request,
                 std::function<void(const ServerExchangeReply&)> told);
  void Register(const RegisterServerRequest& request,
                std::function<void(const RegisterServerReply&)> told);
  void Report(const NodeReport& report);

  /// All pending calls share one sync. The clock advances by `at_least`, or by the time that the
  /// thread was busy, if that is longer.
  void Turn(std::chrono::nanoseconds at_least);

  TimePoint now() const { return now_; }
  const OwnerCosts& costs() const { return costs_; }
  /// Starts the search for the longest step again.
  void ForgetLargest();
  const MasterCore& core() const { return *core_; }

 private:
  StepTime At() const { return {now_, WallTime(0)}; }
  void Count(const char* what, OwnerCosts::Time core);
  void Largest(const char* what, OwnerCosts::Time time);

  const std::unique_ptr<Journal> journal_;
  const SourceCatalog* const sources_;
  TimePoint now_;
  std::unique_ptr<MasterCore> core_;
  std::unique_ptr<GroupCommit> commit_;
  std::vector<GroupCommit::Item> items_;
  std::vector<std::function<void()>> told_;
  OwnerCosts costs_;
  /// Of the turn: what its items took.
  OwnerCosts::Time in_items_{0};
};

}  // namespace muster
