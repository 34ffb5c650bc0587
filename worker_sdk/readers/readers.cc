#include "worker_sdk/readers/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "worker_sdk/readers/lines/lines_reader.h"
#include "worker_sdk/readers/range/number_reader.h"
#include "worker_sdk/readers/topic/topic_reader.h"

namespace muster::sdk {
namespace {

/// A kind of source for workers.
struct Kind {
  bool (*has)(const ShardWork& work);
  std::unique_ptr<ShardReader> (*make)(const HelloResponse& job);
};

constexpr Kind kKinds[] = {
    {[](const ShardWork& work) { return !work.files.empty(); },
     [](const HelloResponse&) -> std::unique_ptr<ShardReader> {
       return std::make_unique<LinesReader>();
     }},
    {[](const ShardWork& work) { return work.stream.has_value(); },
     [](const HelloResponse& job) -> std::unique_ptr<ShardReader> {
       return std::make_unique<TopicReader>(job.topics);
     }},
    {[](const ShardWork& work) { return work.has_numbers(); },
     [](const HelloResponse&) -> std::unique_ptr<ShardReader> {
       return std::make_unique<NumberReader>();
     }},
};

}  // namespace

Readers::Readers(const HelloResponse& job) {
  for (const Kind& kind : kKinds) readers_.push_back(kind.make(job));
}

absl::StatusOr<ShardReader*> Readers::Of(const ShardWork& work) const {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    if (!kKinds[i].has(work)) continue;
    const std::optional<std::string> wrong = work.Contradiction();
    if (!wrong.has_value()) return readers_[i].get();
    return absl::FailedPreconditionError(fmt::format("the master sent what cannot be: {}", *wrong));
  }
  return absl::FailedPreconditionError(
      fmt::format("the master does not say where the records of a shard of dataset '{}' lie: build "
                  "master and trainer from the same release",
                  work.dataset_name));
}

void Readers::Expect(std::span<const ShardWork> works) const {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    std::vector<ShardWork> of_kind;
    std::ranges::copy_if(works, std::back_inserter(of_kind), kKinds[i].has);
    if (!of_kind.empty()) readers_[i]->Expect(of_kind);
  }
}

}  // namespace muster::sdk
