#include "ps/core/control_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/text.h"

namespace muster::ps {
namespace {

void Add(const ServerCounters& from, ServerCounters* to) {
  to->pulls += from.pulls;
  to->pulled_rows += from.pulled_rows;
  to->parts_applied += from.parts_applied;
  to->parts_skipped += from.parts_skipped;
  to->parts_stale += from.parts_stale;
  to->parts_wrong_owner += from.parts_wrong_owner;
  to->rows += from.rows;
  to->row_bytes += from.row_bytes;
  to->snapshots += from.snapshots;
  to->snapshot_bytes += from.snapshot_bytes;
  to->partitions_restored += from.partitions_restored;
  to->pushes += from.pushes;
  to->received_bytes += from.received_bytes;
  to->sent_bytes += from.sent_bytes;
  to->service_us += from.service_us;
}

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

/// The most bytes of an error text. With this, requests stay within the master's limits.
constexpr size_t kErrorBytesMax = 4096;

}  // namespace

ControlState::ControlState(const RegisterServerReply& registered, uint32_t lane_count)
    : id_(registered.id),
      incarnation_(registered.incarnation),
      lane_count_(lane_count),
      master_(registered.master_incarnation),
      reported_(lane_count) {}

ServerExchangeRequest ControlState::MakeRequest(const std::vector<LaneReport>& reports,
                                                const Errors& errors) {
  MUSTER_CHECK(reports.size() <= reported_.size());
  ServerExchangeRequest request;
  request.id = id_;
  request.incarnation = incarnation_;
  request.sequence = sequence_;
  request.newest_table = newest_table_;
  request.forget_version = forget_version_;
  request.leaving = leaving_;
  request.warm_start_error = ValidUtf8(errors.warm_start, kErrorBytesMax);
  request.fatal_error = ValidUtf8(errors.fatal, kErrorBytesMax);
  for (size_t i = 0; i < reports.size(); ++i) {
    const LaneReport& report = reports[i];
    MUSTER_CHECK(report.sequence <= sequence_ && report.sequence >= reported_[i]);
    reported_[i] = report.sequence;
    Append(report.owned, &request.owned);
    Append(report.snapshots, &request.snapshots);
    Append(report.missing, &request.missing);
    Append(report.traffic, &request.traffic);
    Add(report.counters, &request.counters);
    if (request.snapshot_error.empty()) request.snapshot_error = report.snapshot_error;
    if (request.restore_error.empty()) request.restore_error = report.restore_error;
  }
  request.snapshot_error = ValidUtf8(request.snapshot_error, kErrorBytesMax);
  request.restore_error = ValidUtf8(request.restore_error, kErrorBytesMax);
  return request;
}

absl::StatusOr<ControlState::Orders> ControlState::OnReply(const ServerExchangeReply& reply) {
  // Rule 11.4.
  if (reply.master_incarnation < master_) {
    return absl::AbortedError(fmt::format(
        "refused the commands of master incarnation {}, because incarnation {} is newer",
        reply.master_incarnation.value(), master_.value()));
  }
  const bool new_master = reply.master_incarnation > master_;
  if (new_master) {
    master_ = reply.master_incarnation;
    forget_version_ = 0;  // a version counts only for the master that gave it
  }
  if (reply.unknown_incarnation) {
    return absl::FailedPreconditionError(fmt::format(
        "the master no longer knows incarnation {} of server {}: it was declared dead, or another "
        "process has its name. Its partitions belong to other processes now, so it must end",
        incarnation_.value(), id_.value()));
  }
  Orders orders;
  orders.drained = reply.drained;
  orders.lanes.resize(lane_count_);
  for (const TableSpec& table : reply.tables) {
    if (table.id <= table_ordered_) continue;
    table_ordered_ = table.id;
    orders.tables.push_back(table);
  }
  const auto lane = [&](PartitionId partition) -> LaneCommands& {
    return orders.lanes[partition.value() % lane_count_];
  };
  for (const OwnCommand& own : reply.owns) lane(own.partition).owns.push_back(own);
  for (const SnapshotCommand& one : reply.snapshots) lane(one.partition).snapshots.push_back(one);
  for (const AcceptedSnapshot& one : reply.accepted) lane(one.partition).accepted.push_back(one);
  std::shared_ptr<const ForgetState> forget;
  if (reply.forget.has_value()) {
    forget = std::make_shared<const ForgetState>(*reply.forget);
    forget_version_ = forget->version;
  }
  for (size_t i = 0; i < orders.lanes.size(); ++i) {
    LaneCommands& commands = orders.lanes[i];
    commands.sequence = reported_[i];
    commands.forget = forget;
    commands.new_master = new_master;
  }
  return orders;
}

}  // namespace muster::ps
