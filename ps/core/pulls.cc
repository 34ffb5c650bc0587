#include "ps/core/pulls.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "ps/engine/table.h"

namespace muster::ps {
namespace {

using wire::PartCode;

uint64_t KeyCount(std::span<const wire::Group> groups) {
  uint64_t keys = 0;
  for (const wire::Group& group : groups) keys += group.keys;
  return keys;
}

size_t VersionCount(std::span<const wire::Group> groups) {
  return static_cast<size_t>(std::ranges::count_if(groups, &wire::Group::versioned));
}

/// True if the worker already has this version of the rows, under the owner epoch of its request.
bool HoldsRows(const wire::Group& group, const Table& table) {
  return group.Unchanged(table.version());
}

/// The version to report for rows that are read now. It is kNoVersion if the request names the same
/// version. A forged request can name a version that comes true only later: the rows are sent, but
/// with this version in the reply, the worker would expect none.
uint64_t VersionToSay(const wire::Group& group, const Table* table) {
  if (table == nullptr || group.Unchanged(table->version())) return wire::kNoVersion;
  return table->version();
}

void ForgetVersions(size_t from, PullReply* reply) {
  std::fill(reply->versions.begin() + static_cast<std::ptrdiff_t>(from), reply->versions.end(),
            wire::kNoVersion);
}

/// How many groups of a pull the engine gets at once. At the beginning and at the end of each
/// batch, the engine waits for rows and has nothing else to do.
constexpr size_t kGroupsAtOnce = 128;

/// The error text for a value that is too large to be sent. `position` is its place in the rows of
/// `keys`.
std::string TooLarge(const TableSpec& table, std::span<const uint64_t> keys, float value,
                     size_t position, wire::Encoding encoding) {
  return fmt::format(
      "table '{}': the row of key {} has {} in column {}, but {} ends at {}. Set "
      "spec.training.wireEncoding to bfloat16 or float32, or find out why the weights grow",
      table.name, keys[position / table.dim], value, position % table.dim, wire::NameOf(encoding),
      wire::LargestFinite(encoding));
}

/// Returns false if a row of [begin, end) is too large for the encoding. The text of the reply then
/// says so.
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

PartCode Pulls::BeginPart(const wire::Part& part, uint64_t floats_before, PullReply* reply,
                          uint64_t* floats) {
  PartCode code = lane_->Admit(part.partition, part.owner_epoch);
  const Slot* const slot =
      code == PartCode::kOk ? lane_->Find(PartitionId(part.partition)) : nullptr;
  const size_t first_version = reply->versions.size();
  *floats = 0;
  for (const wire::Group& group : part.groups) {
    const uint32_t width = tables_->Width(group.table);
    if (width == 0 && code == PartCode::kOk) code = PartCode::kRetry;
    if (group.versioned()) {
      const Table* const table =
          slot == nullptr ? nullptr : slot->partition->FindTable(TableId(group.table));
      const bool held = table != nullptr && HoldsRows(group, *table);
      reply->versions.push_back(held ? group.version : wire::kNoVersion);
      if (held) continue;
    }
    *floats += uint64_t{group.keys} * width;
  }
  if (code == PartCode::kOk && (floats_before + *floats) * sizeof(float) > reply_bytes_max_) {
    code = PartCode::kBadRequest;
    reply->text = fmt::format(
        "partition {}: the rows of one pull have more than {} bytes; pull fewer keys at once",
        part.partition, reply_bytes_max_);
  }
  if (code != PartCode::kOk) ForgetVersions(first_version, reply);
  return code;
}

void Pulls::Begin(const PullRequest& request, PullReply* reply) {
  ++lane_->counters.pulls;
  // Finds first how many values each part needs, so that the reply's memory is sized only once.
  uint64_t floats = 0;
  reply->parts.reserve(request.parts.size());
  reply->versions.reserve(request.parts.version_count());
  for (const wire::Part& part : request.parts) {
    uint64_t part_floats = 0;
    const PartCode code = BeginPart(part, floats, reply, &part_floats);
    if (code == PartCode::kOk) floats += part_floats;
    reply->parts.push_back({.partition = part.partition, .code = code});
  }
  if (reply->values.Resize(floats * sizeof(float))) return;
  for (wire::PartReply& part : reply->parts) part.code = PartCode::kRetry;
  ForgetVersions(0, reply);
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
      // A text would move what follows it in shared memory to an odd address. A worker that must
      // try again needs no text.
      if (!unknown) {
        reply->text = fmt::format("partition {}: {}", request.parts[progress->part].partition,
                                  Message(gathered.status));
      }
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
  std::span<uint64_t> versions = std::span(reply->versions).subspan(progress.versions_of_part);
  size_t first = progress.in_part.group;
  for (size_t p = progress.part; p < request.parts.size(); ++p, first = 0) {
    const wire::Part& part = request.parts[p];
    wire::PartReply& answer = reply->parts[p];
    // The owner may have changed since the last slice.
    if (answer.code == PartCode::kOk) answer.code = lane_->Admit(part.partition, part.owner_epoch);
    if (answer.code != PartCode::kOk || part.groups.empty()) {
      groups_.push_back({.more_work = kPartWork});
      keys = keys.subspan(KeyCount(part.groups));
      versions = versions.subspan(VersionCount(part.groups));
      continue;
    }
    const Partition& partition = *lane_->Find(PartitionId(part.partition))->partition;
    for (size_t g = 0; g < part.groups.size(); ++g) {
      const wire::Group& asked = part.groups[g];
      uint64_t* const version = asked.versioned() ? &versions.front() : nullptr;
      const bool held = version != nullptr && asked.Unchanged(*version);
      const size_t count = asked.keys, sent = held ? 0 : count,
                   floats = sent * tables_->Width(asked.table);
      if (g >= first) {
        const Table* const table = partition.FindTable(TableId(asked.table));
        const bool goes_on = p == progress.part && g == first && progress.in_part.row > 0;
        if (version != nullptr && !held && !goes_on) *version = VersionToSay(asked, table);
        groups_.push_back({.table = table,
                           .keys = keys.first(sent),
                           .values = values.first(floats),
                           .goes_on = g > first,
                           .more_work = g + 1 == part.groups.size() ? kPartWork : 0});
      }
      keys = keys.subspan(count);
      values = values.subspan(floats);
      if (version != nullptr) versions = versions.subspan(1);
      if (groups_.size() >= kGroupsAtOnce) return;
    }
    // After a part whose rows do not fit the encoding, the rows of later parts begin at another
    // place of the reply. So the parts are gathered one by one.
    if (progress.one_part) return;
  }
}

void Pulls::SettleVersion(const PullGroup& group, const wire::Group& asked, PullReply* reply,
                          RequestProgress* progress) {
  uint64_t& version = reply->versions[progress->versions++];
  if (!asked.Unchanged(version) && VersionToSay(asked, group.table) != version) {
    version = wire::kNoVersion;
  }
}

bool Pulls::FinishGroups(const PullRequest& request, const Gathered& gathered, PullReply* reply,
                         RequestProgress* progress) {
  PartProgress& at = progress->in_part;
  for (size_t i = 0; i < groups_.size() && i <= gathered.group; ++i) {
    const PullGroup& group = groups_[i];
    const wire::Part& part = request.parts[progress->part];
    const bool whole = i < gathered.group;
    // A part that is refused meanwhile has one group without rows, so the row must not go back.
    const size_t end = std::max(at.row, whole ? group.keys.size() : gathered.row);
    const size_t begin = std::exchange(at.row, end);
    if (!FitEncoding(request, group, begin, at.row, part, reply)) {
      FinishPart(PartCode::kBadRequest, request, reply, progress);
      progress->one_part = true;
      return false;
    }
    lane_->counters.pulled_rows += at.row - begin;
    if (!whole) break;
    const bool served = reply->parts[progress->part].code == PartCode::kOk && !part.groups.empty();
    if (served && part.groups[at.group].versioned()) {
      SettleVersion(group, part.groups[at.group], reply, progress);
    }
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
  const std::span<uint64_t> versions = std::span(reply->versions)
                                           .subspan(progress->versions_of_part)
                                           .first(VersionCount(part.groups));
  const uint64_t keys = KeyCount(part.groups);
  reply->parts[progress->part].code = code;
  if (code == PartCode::kOk) {
    uint64_t floats = 0;
    size_t version = 0;
    for (const wire::Group& group : part.groups) {
      if (group.versioned() && group.Unchanged(versions[version++])) continue;
      floats += uint64_t{group.keys} * tables_->Width(group.table);
    }
    progress->floats += floats;
    traffic_->CountPart(*lane_->Find(PartitionId(part.partition)), LaneTraffic::Kind::kPull, keys,
                        floats, progress);
  } else {
    std::ranges::fill(versions, wire::kNoVersion);
  }
  progress->keys += keys;
  progress->versions = progress->versions_of_part + versions.size();
  ++progress->part;
  progress->BeginPart();
}

}  // namespace muster::ps
