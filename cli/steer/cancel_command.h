#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/ask/query_commands.h"

/// `muster cancel`: what a cancel loses is said first, and can be committed first.
namespace muster::steer {

struct CancelOptions {
  QueryOptions query;
  std::string reason;
  std::optional<bool> snapshot;  // absent: a person at a terminal is asked
  uint32_t timeout_s = 60;       // of the snapshots
};
/// Returns the exit code of the process.
int CancelCommand(const CancelOptions& options);

enum class BeforeCancel : uint8_t { kNothing, kSnapshot, kAsk, kQuit };

/// What comes before the cancel when `uncommitted` records would be lost. `person`: a
/// person at a terminal can answer. Pure.
BeforeCancel WhatFirst(std::optional<bool> snapshot, uint64_t uncommitted, bool person);

/// What a person answers to "snapshot first?": yes (also by Enter alone), no, or quit; nothing for
/// any other text. Pure.
std::optional<BeforeCancel> ParseAnswer(std::string_view line);

}  // namespace muster::steer
