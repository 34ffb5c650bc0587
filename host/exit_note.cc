#include "host/exit_note.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"

namespace muster {
namespace {

// Longer than what a root cause quotes of a log.
constexpr size_t kWordsMax = 1500;
constexpr size_t kWordsStep = 100;
// The largest signal number of the kernel.
constexpr uint64_t kSignalMax = 64;
constexpr uint64_t kCodeMax = 255;

nlohmann::json SlotJson(const SlotRecord& slot) {
  nlohmann::json loops = nlohmann::json::array();
  for (const SlotRecord::Computing& loop : slot.computing) {
    loops.push_back({loop.token.value(), loop.minibatches_started});
  }
  return {{"incarnation", slot.incarnation},
          {"loops", std::move(loops)},
          {"ended", slot.ended},
          {"crowded", slot.crowded}};
}

/// Reads a whole number up to `most`. It checks the type first, because the library would convert
/// other numbers silently.
absl::StatusOr<uint64_t> ReadNumber(const nlohmann::json& json, uint64_t most = UINT64_MAX) {
  if (json.is_number_unsigned() && json.get<uint64_t>() <= most) return json.get<uint64_t>();
  return absl::InvalidArgumentError(
      fmt::format("an exit note has a {} in place of a number up to {}", json.type_name(), most));
}

absl::StatusOr<SlotRecord> ReadSlot(const nlohmann::json& json) {
  SlotRecord slot{.ended = json.at("ended").get<bool>(), .crowded = json.at("crowded").get<bool>()};
  MUSTER_ASSIGN_OR_RETURN(slot.incarnation, ReadNumber(json.at("incarnation")));
  for (const nlohmann::json& loop : json.at("loops")) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t token, ReadNumber(loop.at(0)));
    MUSTER_ASSIGN_OR_RETURN(const uint64_t started, ReadNumber(loop.at(1), UINT32_MAX));
    slot.computing.push_back({LeaseToken::FromValue(token), static_cast<uint32_t>(started)});
  }
  if (slot.computing.size() > SlotFile::kLoopsMax) {
    return absl::InvalidArgumentError("an exit note names too many loops");
  }
  return slot;
}

// The end of `words`, at most `bytes`. It begins at a line, or in the middle of a long line.
std::string_view EndOf(std::string_view words, size_t bytes) {
  if (words.size() <= bytes) return words;
  const std::string_view end = words.substr(words.size() - bytes);
  const size_t line = end.find('\n');
  return line == std::string_view::npos || line + 1 == end.size() ? end : end.substr(line + 1);
}

}  // namespace

std::string ExitNote(const NodeExited& event) {
  nlohmann::json json = {{"signal", event.exit.signal},
                         {"code", event.exit.code},
                         {"memory_kill", static_cast<int>(event.memory_kill)},
                         {"memory_peak_bytes", event.memory_peak_bytes},
                         {"memory_limit_bytes", event.memory_limit_bytes}};
  if (event.slot.has_value()) json["slot"] = SlotJson(*event.slot);
  // JSON may need six bytes for one byte of the log, so the words are cut until the note fits.
  for (size_t bytes = kWordsMax;; bytes -= kWordsStep) {
    json["last_words"] = EndOf(event.last_words, bytes);
    std::string note = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (note.size() <= kExitNoteBytesMax || bytes == 0) return note;
  }
}

absl::StatusOr<NodeExited> ParseExitNote(std::string_view note) {
  try {
    const nlohmann::json json = nlohmann::json::parse(note);
    NodeExited event;
    MUSTER_ASSIGN_OR_RETURN(const uint64_t signal, ReadNumber(json.at("signal"), kSignalMax));
    MUSTER_ASSIGN_OR_RETURN(const uint64_t code, ReadNumber(json.at("code"), kCodeMax));
    event.exit = {.signal = static_cast<int>(signal), .code = static_cast<int>(code)};
    MUSTER_ASSIGN_OR_RETURN(
        const uint64_t kill,
        ReadNumber(json.at("memory_kill"), static_cast<uint64_t>(MemoryKill::kMachine)));
    event.memory_kill = static_cast<MemoryKill>(kill);
    MUSTER_ASSIGN_OR_RETURN(event.memory_peak_bytes, ReadNumber(json.at("memory_peak_bytes")));
    MUSTER_ASSIGN_OR_RETURN(event.memory_limit_bytes, ReadNumber(json.at("memory_limit_bytes")));
    event.last_words = json.at("last_words").get<std::string>();
    if (json.contains("slot")) {
      MUSTER_ASSIGN_OR_RETURN(event.slot, ReadSlot(json["slot"]));
    }
    return event;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("this is no exit note: ") + error.what());
  }
}

}  // namespace muster
