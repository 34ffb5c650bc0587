#include "cli/reference/completion_script.h"
#include "cli/show/output.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddCompletion(CLI::App* app, Chosen* chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand(
      "completion", "Print a script that completes verbs and options in a shell");
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer(
      "Examples:\n"
      "  source <(muster completion bash)             # or in ~/.bashrc\n"
      "  source <(muster completion zsh)              # or in ~/.zshrc\n"
      "  muster completion fish > ~/.config/fish/completions/muster.fish");
  verb->callback([app, chosen, shell] {
    *chosen = [app, shell] {
      PrintData(CompletionScript(*app, *shell));
      return kExitSucceeded;
    };
  });
}

}  // namespace muster
