#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "cli/show/output.h"
#include "cli/verbs/named_verb.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {
namespace {

int Help(const CLI::App& app, const std::string& verb) {
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
                                          : nlohmann::json{{"version", kVersion}}.dump() + "\n");
  return kExitSucceeded;
}

}  // namespace

void AddHelp(CLI::App* app, Chosen* chosen) {
  const auto name = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("help", "Show the verbs, or the options of one verb");
  verb->add_option("verb", *name, "A verb, for example run");
  verb->footer("Examples:\n  muster help\n  muster help run");
  verb->callback([app, chosen, name] { *chosen = [app, name] { return Help(*app, *name); }; });
}

void AddVersion(CLI::App* app, Chosen* chosen) {
  const auto output = std::make_shared<OutputFormat>();
  CLI::App* verb = app->add_subcommand("version", "Show the version of this program");
  AddOutput(verb, output.get());
  verb->footer("Examples:\n  muster version\n  muster version --output json");
  verb->callback([chosen, output] { *chosen = [output] { return Version(*output); }; });
}

}  // namespace muster
