#include "cli/steer/patience.h"

#include <fmt/format.h>

#include <utility>

#include "cli/show/output.h"

namespace muster::steer {

Patience Patience::OfAPerson(std::optional<std::chrono::seconds> limit, const Clock* clock) {
  return Patience({.limit = limit,
                   .pause = [] { SleepFor(std::chrono::milliseconds(300)); },
                   .say = [](std::string_view words) { PrintNote(words); }},
                  clock);
}

bool Patience::Wait(std::string_view what) {
  const TimePoint now = clock_->Now();
  if (options_.limit.has_value() && now - began_ >= *options_.limit) return false;
  if (now - said_ >= kSayEvery) {
    said_ = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_);
    options_.say(fmt::format("waiting for {}, {} s", what, seconds.count()));
  }
  options_.pause();
  return true;
}

}  // namespace muster::steer
