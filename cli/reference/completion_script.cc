#include "cli/reference/completion_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/reference/named_verb.h"
#include "cli/show/shell_word.h"

namespace muster {
namespace {

/// All names of the options that the help of a verb shows: "--output", "-o".
std::vector<std::string> OptionsOf(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// For bash, and for zsh through its emulation of bash's completion.
std::string BashScript(const CLI::App& app) {
  std::string cases;
  for (const std::string& name : ListedVerbs(app)) {
    cases += fmt::format("    {}) options={} ;;\n", name,
                         ShellQuoted(Words(OptionsOf(*app.get_subcommand(name)))));
  }
  return fmt::format(R"(_muster() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" options=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {verbs} -- "$current"))
    return
  fi
  case "$previous" in
    -o|--output) COMPREPLY=($(compgen -W 'text json' -- "$current")); return ;;
    help) COMPREPLY=($(compgen -W {verbs} -- "$current")); return ;;
  esac
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
  esac
}}
complete -o default -F _muster muster
)",
                     fmt::arg("verbs", ShellQuoted(Words(ListedVerbs(app)))),
                     fmt::arg("cases", cases));
}

std::string FishScript(const CLI::App& app) {
  std::string script;
  for (const std::string& name : ListedVerbs(app)) {
    const CLI::App& verb = *app.get_subcommand(name);
    script += fmt::format("complete -c muster -f -n __fish_use_subcommand -a {} -d {}\n", name,
                          ShellQuoted(verb.get_description()));
    for (const CLI::Option* option : verb.get_options()) {
      if (option->get_group().empty() || option->get_lnames().empty()) continue;
      script += fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -l {}", name,
                            option->get_lnames().front());
      if (!option->get_snames().empty()) {
        script += fmt::format(" -s {}", option->get_snames().front());
      }
      if (option->get_lnames().front() == "output") script += " -x -a 'text json'";
      script += fmt::format(" -d {}\n", ShellQuoted(option->get_description()));
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  if (shell == "fish") return FishScript(app);
  if (shell == "zsh") {
    // The script can be sourced. It can also be a file _muster of $fpath. The first completion then
    // runs it, so it must answer that completion.
    return "#compdef muster\n"
           "(( $+functions[compdef] )) || { autoload -U compinit && compinit; }\n"
           "autoload -U +X bashcompinit && bashcompinit\n" +
           BashScript(app) +
           "if [ \"${funcstack[1]}\" = _muster ]; then _bash_complete -o default -F _muster; fi\n";
  }
  return BashScript(app);
}

}  // namespace muster
