#include "benchmarks/measured_owner.h"

#include <algorithm>

#include "base/status.h"
#include "benchmarks/master_job.h"
#include "proto/fields/encode.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kTick{50};  // as the owner loop

template <typename Reply>
size_t BytesOf(Reply& reply) {
  return fields::Encode(reply).size();
}

}  // namespace

OwnerCosts operator-(const OwnerCosts& later, const OwnerCosts& earlier) {
  OwnerCosts between = later;
  between.core -= earlier.core;
  between.answer -= earlier.answer;
  between.journal -= earlier.journal;
  between.journal_wall -= earlier.journal_wall;
  between.calls -= earlier.calls;
  between.reply_bytes -= earlier.reply_bytes;
  return between;
}

MeasuredOwner::MeasuredOwner(const CoreOptions& options, const std::string& folder,
                             const SourceCatalog* sources, TimePoint now)
    : journal_(OpenMasterJournal(folder)), sources_(sources), now_(now) {
  DurableState state = journal_->TakeState();
  const absl::Status fits = MasterCore::CheckFits(options, state);
  MUSTER_CHECK_MSG(fits.ok(), fits.ToString());
  core_ = std::make_unique<MasterCore>(options, std::move(state), At());
  const absl::Status begun = journal_->Write(core_->TakeMutations());
  MUSTER_CHECK_MSG(begun.ok(), begun.ToString());
  commit_ = std::make_unique<GroupCommit>(core_.get(), kTick, now_);
}

void MeasuredOwner::AskWorker(const WorkerExchangeRequest& request,
                              std::function<void(const WorkerAnswer&)> told) {
  auto shared = std::make_shared<const WorkerExchangeRequest>(request);
  Ask<WorkerAnswer>(
      "a worker's exchange",
      [shared](MasterCore& core, StepTime at) -> absl::StatusOr<WorkerAnswer> {
        MUSTER_ASSIGN_OR_RETURN(WorkerExchangeReply reply, core.ExchangeWorker(*shared, at));
        return WorkerAnswer{std::move(reply), core.TellMap(*shared)};
      },
      [this](WorkerAnswer& answer) {
        for (ShardGrant& grant : answer.reply.grants) sources_->Describe(grant.shard, &grant.work);
        const size_t map_bytes = answer.map == nullptr ? 0 : answer.map->Encoded().size();
        return fields::Encode(answer.reply).size() + map_bytes;
      },
      std::move(told));
}

void MeasuredOwner::AskServer(const ServerExchangeRequest& request,
                              std::function<void(const ServerExchangeReply&)> told) {
  auto shared = std::make_shared<const ServerExchangeRequest>(request);
  Ask<ServerExchangeReply>(
      "a server's exchange",
      [shared](MasterCore& core, StepTime at) { return core.ExchangeServer(*shared, at); },
      BytesOf<ServerExchangeReply>, std::move(told));
}

void MeasuredOwner::Register(const RegisterServerRequest& request,
                             std::function<void(const RegisterServerReply&)> told) {
  Ask<RegisterServerReply>(
      "a server's registration",
      [request](MasterCore& core, StepTime at) { return core.RegisterServer(request, at); },
      BytesOf<RegisterServerReply>, std::move(told));
}

void MeasuredOwner::Report(const NodeReport& report) {
  GroupCommit::Item item;
  item.step = [this, report](MasterCore& core, StepTime at) {
    const auto began = ThreadCpu();
    core.ReportNode(report, at);
    Count("a report on a node", ThreadCpu() - began);
    return absl::OkStatus();
  };
  item.answer = [](const absl::Status&) {};
  items_.push_back(std::move(item));
}

void MeasuredOwner::Count(const char* what, OwnerCosts::Time core) {
  ++costs_.calls;
  in_items_ += core;
  Largest(what, core);
}

void MeasuredOwner::Largest(const char* what, OwnerCosts::Time time) {
  if (time <= costs_.largest) return;
  costs_.largest = time;
  costs_.largest_what = what;
}

void MeasuredOwner::ForgetLargest() {
  costs_.largest = {};
  costs_.largest_what.clear();
}

void MeasuredOwner::Turn(std::chrono::nanoseconds at_least) {
  const OwnerCosts before = costs_;
  in_items_ = {};
  const auto began = ThreadCpu();
  const std::vector<Mutation> mutations = commit_->Step(std::exchange(items_, {}), At());
  const auto stepped = ThreadCpu();
  costs_.core += stepped - began;
  Largest("a tick, and what is to be journaled", (stepped - began) - in_items_);
  if (!mutations.empty()) {
    const auto cpu = ThreadCpu();
    const auto wall = std::chrono::steady_clock::now();
    const absl::Status written = journal_->Write(mutations);
    MUSTER_CHECK_MSG(written.ok(), written.ToString());
    costs_.journal_wall += std::chrono::steady_clock::now() - wall;
    costs_.journal += ThreadCpu() - cpu;
  }
  const auto answering = ThreadCpu();
  commit_->Synced();
  costs_.answer += ThreadCpu() - answering;
  now_ += std::max<std::chrono::nanoseconds>(at_least, (costs_ - before).busy());
  for (const auto& told : std::exchange(told_, {})) told();
}

}  // namespace muster
