#include <algorithm>
#include <utility>

#include "base/status.h"
#include "proto/exported/exported_table.h"
#include "ps/export/export.h"
#include "sharding/partition_of.h"

namespace muster::ps {
namespace {

/// The rows of mapped files, listed by partition.
class ExportRows final : public WarmStartSource {
 public:
  ExportRows(const TableSpec& table, uint32_t partition_count, ExportedTable exported)
      : dim_(table.dim), sparse_(table.shape.empty()), exported_(std::move(exported)) {
    const uint64_t rows = sparse_ ? exported_.keys().size() : DenseBlockCount(table);
    // This is a counting sort by partition.
    begin_.assign(partition_count + 1, 0);
    std::vector<uint32_t> partitions(rows);
    for (uint64_t row = 0; row < rows; ++row) {
      partitions[row] = PartitionOf(table.id, Key(row), partition_count).value();
      ++begin_[partitions[row] + 1];
    }
    for (uint32_t p = 0; p < partition_count; ++p) begin_[p + 1] += begin_[p];
    rows_.resize(rows);
    std::vector<uint64_t> next(begin_.begin(), begin_.end() - 1);
    for (uint64_t row = 0; row < rows; ++row) rows_[next[partitions[row]]++] = row;
  }

  void ForEachRow(PartitionId partition,
                  absl::FunctionRef<void(uint64_t, std::span<const float>)> visit) const override {
    const std::span<const float> values = exported_.values();
    std::vector<float> last(dim_);
    if (partition.value() + 1 >= begin_.size()) return;
    for (uint64_t i = begin_[partition.value()]; i < begin_[partition.value() + 1]; ++i) {
      const uint64_t row = rows_[i];
      const std::span<const float> rest = values.subspan(row * dim_);
      if (rest.size() >= dim_) {
        visit(Key(row), rest.first(dim_));
      } else {  // the last block of a tensor, with its padding
        std::ranges::fill(last, 0.0f);
        std::ranges::copy(rest, last.begin());
        visit(Key(row), last);
      }
    }
  }

 private:
  uint64_t Key(uint64_t row) const { return sparse_ ? exported_.keys()[row] : row; }

  const uint32_t dim_;
  const bool sparse_;
  const ExportedTable exported_;
  std::vector<uint64_t> begin_;  // by partition: where its rows begin in rows_
  std::vector<uint64_t> rows_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const WarmStartSource>> LoadWarmStart(const TableSpec& table,
                                                                     uint32_t partition_count) {
  MUSTER_ASSIGN_OR_RETURN(ExportedTable exported, ExportedTable::Open(table));
  return std::make_shared<const ExportRows>(table, partition_count, std::move(exported));
}

}  // namespace muster::ps
