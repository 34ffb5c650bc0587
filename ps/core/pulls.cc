#include "ps/core/pulls.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster::ps {
namespace {

using wire::PartCode;

uint64_t KeyCount(std::span<const wire::Group> groups) {
  uint64_t keys = 0;
  for (const wire::Group& group : groups) keys += group.keys;
  return keys;
}

/// Of a pull that the engine sees together. Each batch of groups begins and ends with rows that
/// nothing else is done for meanwhile.
constexpr size_t kGroupsAtOnce = 128;

/// Why the value at `position` of rows of `keys` cannot be sent.
std::string TooLarge(const TableSpec& table, std::span<const uint64_t> keys, float value,
                     size_t position, wire::Encoding encoding) {
  return fmt::format(
      "table '{}': the row of key {} has {} in column {}, but {} ends at {}: set "
      "spec.training.wireEncoding to bfloat16 or float32, or look why the weights grow",
      table.name, keys[position / table.dim], value, position % table.dim, wire::NameOf(encoding),
      wire::LargestFinite(encoding));
}

/// False: a row of [begin, end) is too large for the encoding, and the reply says so.
bool FitEncoding(const PullRequest& request, const PullGroup& group, size_t begin, size_t end,
                 const wire::Part& part, PullReply* reply) {
  if (begin == end || request.encoding == wire::Encoding::kFloat32) return true;
  const size_t dim = group.table->dim();
  const std::span<const float> rows = group.values.subspan(begin * dim, (end - begin) * dim);
  const size_t bad = wire::FirstUnencodable(rows, request.encoding);
  if (bad == rows.size()) return true;
  reply->text = fmt::format(
      "partition {}: {}", part.partition,
      TooLarge(group.table->spec(), group.keys.subspan(begin), rows[bad], bad, request.encoding));
  return false;
}

}  // namespace

void Pulls::Begin(const PullRequest& request, PullReply* reply) {
  ++lane_->counters.pulls;
  // First what each part may have, so that the values are sized once.
  uint64_t floats = 0;
  reply->parts.reserve(request.parts.size());
  for (const wire::Part& part : request.parts) {
    PartCode code = lane_->Admit(part.partition, part.owner_epoch);
    uint64_t part_floats = 0;
    for (const wire::Group& group : part.groups) {
      const uint32_t width = tables_->Width(group.table);
      if (width == 0 && code == PartCode::kOk) code = PartCode::kRetry;
      part_floats += uint64_t{group.keys} * width;
    }
    if (code == PartCode::kOk && (floats + part_floats) * sizeof(float) > reply_bytes_max_) {
      code = PartCode::kBadRequest;
      reply->text = fmt::format(
          "partition {}: the rows of one pull are more than {} bytes; pull "
          "fewer keys at once",
          part.partition, reply_bytes_max_);
    }
    if (code == PartCode::kOk) floats += part_floats;
    reply->parts.push_back({.partition = part.partition, .code = code});
  }
  if (reply->values.Resize(floats * sizeof(float))) return;
  for (wire::PartReply& part : reply->parts) part.code = PartCode::kRetry;
}

Progress Pulls::Serve(const PullRequest& request, const Slice& slice, PullReply* reply,
                      RequestProgress* progress) {
  if (slice.abandoned) return Progress::kDone;
  if (slice.first) {
    progress->Begin();
    Begin(request, reply);
  }
  while (progress->part < request.parts.size()) {
    if (slice.work->spent()) return Progress::kMore;
    CollectGroups(request, reply, *progress);
    const Gathered gathered = Gather(groups_, progress->in_part.row, slice.work);
    const bool all = FinishGroups(request, gathered, reply, progress);
    if (!gathered.status.ok() && all) {
      const bool unknown = absl::IsNotFound(gathered.status);
      const wire::Part& part = request.parts[progress->part];
      const std::string why =
          unknown ? fmt::format("table {} is not known", part.groups[progress->in_part.group].table)
                  : std::string(Message(gathered.status));
      reply->text = fmt::format("partition {}: {}", part.partition, why);
      FinishPart(unknown ? PartCode::kRetry : PartCode::kBadRequest, request, reply, progress);
      slice.work->Spend(kPartWork);
    } else if (all && gathered.group < groups_.size()) {
      return Progress::kMore;
    }
  }
  MUSTER_CHECK(reply->values.Resize(progress->floats * sizeof(float)));
  return Progress::kDone;
}

void Pulls::CollectGroups(const PullRequest& request, PullReply* reply,
                          const RequestProgress& progress) {
  groups_.clear();
  std::span<const uint64_t> keys = request.keys.subspan(progress.keys);
  std::span<float> values = reply->values.floats().subspan(progress.floats);
  size_t first = progress.in_part.group;
  for (size_t p = progress.part; p < request.parts.size(); ++p, first = 0) {
    const wire::Part& part = request.parts[p];
    wire::PartReply& answer = reply->parts[p];
    // Its owner may have changed since the slice before.
    if (answer.code == PartCode::kOk) answer.code = lane_->Admit(part.partition, part.owner_epoch);
    if (answer.code != PartCode::kOk || part.groups.empty()) {
      groups_.push_back({.more_work = kPartWork});
      keys = keys.subspan(KeyCount(part.groups));
      continue;
    }
    const Partition& partition = *lane_->Find(PartitionId(part.partition))->partition;
    for (size_t g = 0; g < part.groups.size(); ++g) {
      const size_t count = part.groups[g].keys,
                   floats = count * tables_->Width(part.groups[g].table);
      if (g >= first) {
        groups_.push_back({.table = partition.FindTable(TableId(part.groups[g].table)),
                           .keys = keys.first(count),
                           .values = values.first(floats),
                           .goes_on = g > first,
                           .more_work = g + 1 == part.groups.size() ? kPartWork : 0});
      }
      keys = keys.subspan(count);
      values = values.subspan(floats);
      if (groups_.size() >= kGroupsAtOnce) return;
    }
    // With rows that do not fit into the encoding, the rows behind it lie elsewhere.
    if (progress.one_part) return;
  }
}

bool Pulls::FinishGroups(const PullRequest& request, const Gathered& gathered, PullReply* reply,
                         RequestProgress* progress) {
  PartProgress& at = progress->in_part;
  for (size_t i = 0; i < groups_.size() && i <= gathered.group; ++i) {
    const PullGroup& group = groups_[i];
    const wire::Part& part = request.parts[progress->part];
    const bool whole = i < gathered.group;
    // A part that is refused by now has a group without rows.
    const size_t end = std::max(at.row, whole ? group.keys.size() : gathered.row);
    const size_t begin = std::exchange(at.row, end);
    if (!FitEncoding(request, group, begin, at.row, part, reply)) {
      FinishPart(PartCode::kBadRequest, request, reply, progress);
      progress->one_part = true;
      return false;
    }
    lane_->counters.pulled_rows += at.row - begin;
    if (!whole) break;
    at = {.group = at.group + 1};
    if (group.more_work != 0) {
      FinishPart(reply->parts[progress->part].code, request, reply, progress);
    }
  }
  return true;
}

void Pulls::FinishPart(PartCode code, const PullRequest& request, PullReply* reply,
                       RequestProgress* progress) {
  const wire::Part& part = request.parts[progress->part];
  const uint64_t keys = KeyCount(part.groups);
  reply->parts[progress->part].code = code;
  if (code == PartCode::kOk) {
    uint64_t floats = 0;
    for (const wire::Group& group : part.groups)
      floats += uint64_t{group.keys} * tables_->Width(group.table);
    progress->floats += floats;
    traffic_->CountPart(*lane_->Find(PartitionId(part.partition)), LaneTraffic::Kind::kPull, keys,
                        floats, progress);
  }
  progress->keys += keys;
  ++progress->part;
  progress->BeginPart();
}

}  // namespace muster::ps
