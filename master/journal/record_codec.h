#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/core/durable_state.h"
#include "master/journal/journal.h"

/// The journal's keys and values. A key is one letter and big-endian numbers, so that records of a
/// kind lie together in the order of their ids:
///   h header, m meta, d<seq> done, e<dataset><epoch> epoch, f<dataset><epoch><index> failure,
///   k<epoch><partition> kept weights, n<name> node, p<partition> partition, t<id> table,
///   v<sequence> event; of a group, one each: gc checkpoint, gg members, gm model, gs newest step
namespace muster {

/// Oldest and newest format this program reads; it writes the newest.
inline constexpr uint32_t kJournalFormat = 1;
inline constexpr std::string_view kHeaderKey = "h";

/// The effect of a mutation on the store: it puts a value, or removes the keys in [key, end), or
/// only `key` if `end` is empty.
struct StoreChange {
  std::string key;
  std::optional<std::string> value;
  std::string end;
};
StoreChange Encode(const Mutation& mutation);
/// The mutation of a stored record. If it cannot be read, kDataLoss names the key.
absl::StatusOr<Mutation> Decode(std::string_view key, std::string_view value);

std::string EncodeHeader(const JournalHeader& header);
/// kFailedPrecondition when the format is a newer one.
absl::StatusOr<JournalHeader> DecodeHeader(std::string_view value);

}  // namespace muster
