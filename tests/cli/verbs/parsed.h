#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/verbs/verbs.h"

namespace muster {

/// The arguments of a verb's command for this line; none if the line is refused. `add` is a
/// function of cli/verbs/verbs.h that takes one command.
template <typename Options>
std::optional<Options> Parsed(void (*add)(CLI::App*, Chosen*, Command<Options>),
                              const std::string& line) {
  CLI::App app;
  Chosen chosen;
  std::optional<Options> given;
  add(&app, &chosen, [&given](const Options& options) {
    given = options;
    return 17;
  });
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  return chosen && chosen() == 17 ? given : std::nullopt;
}

}  // namespace muster
