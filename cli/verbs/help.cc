#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/status.h"
#include "base/version.h"
#include "cli/reference/man_page.h"
#include "cli/reference/named_verb.h"
#include "cli/show/output.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

struct HelpOptions {
  std::string verb;
  std::string man_directory;
  bool flags = false;
};

int WriteManPages(const CLI::App& app, const std::string& directory) {
  absl::Status status = MakeDirectories(directory);
  for (const auto& [name, page] : ManPages(app)) {
    if (status.ok()) status = WriteFileAtomically(directory + "/" + name, page);
  }
  return status.ok() ? kExitSucceeded : PrintError(Message(status), kExitFailed);
}

int Help(const CLI::App& app, const HelpOptions& options) {
  const std::string& verb = options.verb;
  if (!options.man_directory.empty()) return WriteManPages(app, options.man_directory);
  if (options.flags) {
    PrintData(FlagsText(FlagsOf(app)));
    return kExitSucceeded;
  }
  if (verb.empty()) {
    PrintData(app.help());
    return kExitSucceeded;
  }
  if (const absl::Status known = CheckVerb(app, verb); !known.ok()) return PrintError(known);
  PrintData(app.get_subcommand(verb)->help(app.get_name()));
  return kExitSucceeded;
}

int Version(OutputFormat output) {
  PrintData(output == OutputFormat::kText ? fmt::format("muster {}\n", kVersion)
                                          : JsonText({{"version", kVersion}}) + "\n");
  return kExitSucceeded;
}

}  // namespace

void AddHelp(CLI::App* app, Chosen* chosen) {
  const auto options = std::make_shared<HelpOptions>();
  CLI::App* verb = app->add_subcommand("help", "Show the verbs, or the options of one verb");
  verb->add_option("verb", options->verb, "A verb, for example run");
  verb->add_option("--man-dir", options->man_directory,
                   "Instead, write the man pages of all verbs into this folder");
  verb->add_flag("--flags", options->flags,
                 "Instead, list the options of all verbs with their meanings");
  verb->footer(
      "Examples:\n  muster help\n  muster help run\n  muster help --flags\n"
      "  muster help --man-dir ~/.local/share/man/man1");
  verb->callback(
      [app, chosen, options] { *chosen = [app, options] { return Help(*app, *options); }; });
}

void AddVersion(CLI::App* app, Chosen* chosen) {
  const auto output = std::make_shared<OutputFormat>();
  CLI::App* verb = app->add_subcommand("version", "Show the version of this program");
  AddOutput(verb, output.get());
  verb->footer("Examples:\n  muster version\n  muster version --output json");
  verb->callback([chosen, output] { *chosen = [output] { return Version(*output); }; });
}

}  // namespace muster
