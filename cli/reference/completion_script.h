#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace muster {

/// A script for the shell ("bash", "zsh" or "fish"). It completes the verbs of `app`, their
/// options, the values of --output, and file names elsewhere. It is generated from the parser, so
/// it always matches the program.
std::string CompletionScript(const CLI::App& app, const std::string& shell);

}  // namespace muster
