#include "master/sources/kinds.h"

#include <variant>

#include "base/check.h"
#include "master/sources/lines/lines_dataset.h"
#include "master/sources/range/range_dataset.h"
#include "master/sources/topic/topic_dataset.h"

namespace muster {
namespace {

/// A row for each kind. If one is missing, the compiler reports it.
struct Maker {
  const JobSpec& job;
  const DatasetId dataset;

  std::unique_ptr<DatasetSource> operator()(const LinesSpec&) const {
    return std::make_unique<LinesDataset>(job, dataset);
  }
  std::unique_ptr<DatasetSource> operator()(const TopicSpec&) const {
    return std::make_unique<TopicDataset>(job, dataset);
  }
  std::unique_ptr<DatasetSource> operator()(const RangeSpec&) const {
    return std::make_unique<RangeDataset>(job, dataset);
  }
};

}  // namespace

std::unique_ptr<DatasetSource> MakeSource(const JobSpec& job, DatasetId dataset) {
  MUSTER_CHECK(dataset.value() < job.datasets.size());
  return std::visit(Maker{job, dataset}, job.datasets[dataset.value()].source);
}

}  // namespace muster
