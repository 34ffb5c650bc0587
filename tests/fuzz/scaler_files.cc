#include <string>
#include <variant>

#include "base/check.h"
#include "base/status.h"
#include "scaler/decision/log/event_file.h"
#include "scaler/history/history_line.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

using scaler::EventLine;
using scaler::HistoryHead;
using scaler::HistoryLine;
using scaler::ParseEventLine;
using scaler::ParseHistoryLine;

void CheckEvent(std::string_view line) {
  const auto event = ParseEventLine(line);
  if (!event.ok()) return;
  const std::string written = EventLine(*event);
  const auto again = ParseEventLine(written);
  MUSTER_CHECK_MSG(again.ok(), Message(again.status()));
  MUSTER_CHECK(EventLine(*again) == written);
  MUSTER_CHECK(EventLine(scaler::BoundedEvent(*event)).size() <= scaler::kEventBytesMax);
}

void CheckHistory(std::string_view line) {
  const auto parsed = ParseHistoryLine(line);
  if (!parsed.ok()) return;
  const auto* const head = std::get_if<HistoryHead>(&*parsed);
  if (head == nullptr) return;
  const std::string written = HistoryLine(*head);
  const auto again = ParseHistoryLine(written);
  MUSTER_CHECK_MSG(again.ok(), Message(again.status()));
  MUSTER_CHECK(HistoryLine(std::get<HistoryHead>(*again)) == written);
}

}  // namespace

void FuzzScalerFiles(std::string_view input) {
  while (!input.empty()) {
    const size_t end = input.find('\n');
    const std::string_view line = input.substr(0, end);
    CheckEvent(line);
    CheckHistory(line);
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  }
}

}  // namespace muster::testing
