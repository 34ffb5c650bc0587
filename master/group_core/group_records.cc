#include "master/group_core/group_records.h"

namespace muster {
namespace {

struct RecordApplier {
  GroupRecords* records;
  void operator()(const GroupModelRecord& record) { records->model = record; }
  void operator()(const GroupRecord& record) { records->group = record; }
  void operator()(const StepRecord& record) { records->step = record; }
  void operator()(const CheckpointRecord& record) { records->checkpoint = record; }
};

}  // namespace

void Apply(const GroupMutation& mutation, GroupRecords* records) {
  std::visit(RecordApplier{records}, mutation);
}

}  // namespace muster
