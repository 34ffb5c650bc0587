#include "cli/reference/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "cli/reference/named_verb.h"

namespace muster {
namespace {

constexpr size_t kColumns = 100;

/// The names of an option, such as "-n, --last INT".
std::string NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_expected_min() > 0) text += " " + option.get_type_name();
  return text;
}

/// Options are sorted by this key: the long name, or the letter if there is no long name.
std::string KeyOf(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_snames().front() : option.get_lnames().front();
}

void AddFlagsOf(const CLI::App& verb, const std::string& name,
                std::map<std::string, ListedFlag>* flags) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_snames().empty() && option->get_lnames().empty()) continue;
    ListedFlag& flag = (*flags)[KeyOf(*option)];
    // Some verbs have a letter for this option, and others do not.
    const std::string names = NamesOf(*option);
    if (names.size() > flag.flag.size()) flag.flag = names;
    const std::string& meaning = option->get_description();
    auto known = std::ranges::find(flag.meanings, meaning, &FlagMeaning::meaning);
    if (known == flag.meanings.end()) {
      flag.meanings.push_back({meaning, {}});
      known = flag.meanings.end() - 1;
    }
    known->verbs.push_back(name);
  }
  for (const CLI::App* below :
       verb.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    AddFlagsOf(*below, name + " " + below->get_name(), flags);
  }
}

/// Breaks `text` into lines that begin with `indent` and end before kColumns.
std::string Wrapped(std::string_view text, std::string_view indent) {
  std::string wrapped;
  std::string line(indent);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      wrapped += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += " ";
    line += word;
  }
  return wrapped + line + "\n";
}

}  // namespace

std::vector<ListedFlag> FlagsOf(const CLI::App& app) {
  std::map<std::string, ListedFlag> flags;
  for (const std::string& verb : ListedVerbs(app)) {
    AddFlagsOf(*app.get_subcommand(verb), verb, &flags);
  }
  std::vector<ListedFlag> list;
  for (auto& [key, flag] : flags) list.push_back(std::move(flag));
  return list;
}

std::string FlagsText(const std::vector<ListedFlag>& flags) {
  std::string text;
  for (const ListedFlag& flag : flags) {
    text += flag.flag + "\n";
    for (const FlagMeaning& meaning : flag.meanings) {
      text += Wrapped(meaning.meaning, "    ");
      text += Wrapped(fmt::format("of: {}", fmt::join(meaning.verbs, ", ")), "      ");
    }
  }
  return text;
}

}  // namespace muster
