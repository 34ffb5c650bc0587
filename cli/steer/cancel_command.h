#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/ask/query_commands.h"

/// `muster cancel`. It first says what a cancel loses, and can commit that before.
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

/// What to do before the cancel if `uncommitted` records would be lost. `person` says that a person
/// at a terminal can answer. Pure.
BeforeCancel WhatFirst(std::optional<bool> snapshot, uint64_t uncommitted, bool person);

/// A person's answer to "snapshot first?": yes (also by Enter alone), no, or quit. None for any
/// other text. Pure.
std::optional<BeforeCancel> ParseAnswer(std::string_view line);

}  // namespace muster::steer
