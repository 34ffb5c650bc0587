#include "host/exit_note.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"

namespace muster {
namespace {

// More of a log than a root cause quotes.
constexpr size_t kWordsMax = 1500;
constexpr size_t kWordsStep = 100;

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

SlotRecord ReadSlot(const nlohmann::json& json) {
  SlotRecord slot{.incarnation = json.at("incarnation").get<uint64_t>(),
                  .ended = json.at("ended").get<bool>(),
                  .crowded = json.at("crowded").get<bool>()};
  for (const nlohmann::json& loop : json.at("loops")) {
    slot.computing.push_back(
        {LeaseToken::FromValue(loop.at(0).get<uint64_t>()), loop.at(1).get<uint32_t>()});
  }
  return slot;
}

// From the line at which at most `bytes` are left, or from the middle of a long line.
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
  // JSON may need six bytes for one of the log, so the words give way until the note fits.
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
    event.exit = {.signal = json.at("signal").get<int>(), .code = json.at("code").get<int>()};
    const int kill = json.at("memory_kill").get<int>();
    if (kill < 0 || kill > static_cast<int>(MemoryKill::kMachine)) {
      return absl::InvalidArgumentError("memory_kill of an exit note is out of range");
    }
    event.memory_kill = static_cast<MemoryKill>(kill);
    event.memory_peak_bytes = json.at("memory_peak_bytes").get<uint64_t>();
    event.memory_limit_bytes = json.at("memory_limit_bytes").get<uint64_t>();
    event.last_words = json.at("last_words").get<std::string>();
    if (json.contains("slot")) {
      event.slot = ReadSlot(json["slot"]);
      if (event.slot->computing.size() > SlotFile::kLoopsMax) {
        return absl::InvalidArgumentError("an exit note names too many loops");
      }
    }
    return event;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("this is no exit note: ") + error.what());
  }
}

}  // namespace muster
