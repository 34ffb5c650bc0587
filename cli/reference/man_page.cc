#include "cli/reference/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/reference/named_verb.h"

namespace muster {
namespace {

/// One line of text for roff. Characters are escaped if they would be requests or hyphens.
std::string Plain(std::string_view line) {
  std::string escaped = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
  for (const char c : line) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Bold(std::string_view text) {
  return "\\fB" + Plain(text) + "\\fR";
}

std::string Title(std::string_view name) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".TH \"{}\" 1 \"\" \"muster {}\" \"Muster\"\n", Plain(upper), kVersion);
}

std::string Name(std::string_view name, std::string_view what) {
  return fmt::format(".SH NAME\n{} \\- {}\n", Plain(name), Plain(what));
}

std::vector<const CLI::Option*> ShownOptions(const CLI::App& verb) {
  std::vector<const CLI::Option*> shown;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_group().empty()) shown.push_back(option);
  }
  return shown;
}

std::vector<const CLI::App*> Below(const CLI::App& verb) {
  return verb.get_subcommands([](const CLI::App* below) { return !below->get_group().empty(); });
}

/// "muster restart [OPTION]... NODE [JOB]", with the same names as in --help.
std::string Synopsis(const CLI::App& verb, const std::string& command) {
  std::string line = Bold(command) + " [\\fIoption\\fR]...";
  for (const CLI::Option* option : ShownOptions(verb)) {
    if (!option->get_positional()) continue;
    const std::string name = "\\fI" + Plain(option->get_name(true)) + "\\fR";
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line + "\n";
}

/// An item of a list (".TP"): a word and its meaning.
std::string Item(const std::string& word, std::string_view what) {
  return ".TP\n" + word + "\n" + Plain(what) + "\n";
}

std::string Options(const CLI::App& verb) {
  std::string items;
  for (const CLI::Option* option : ShownOptions(verb)) {
    std::vector<std::string> names;
    for (const std::string& name : option->get_snames()) names.push_back(Bold("-" + name));
    for (const std::string& name : option->get_lnames()) names.push_back(Bold("--" + name));
    if (names.empty()) names.push_back("\\fI" + Plain(option->get_name(true)) + "\\fR");
    std::string word = fmt::format("{}", fmt::join(names, ", "));
    if (!option->get_positional() && option->get_expected_min() > 0) {
      word += " " + Plain(option->get_type_name());
    }
    items += Item(word, option->get_description());
  }
  return items;
}

/// The text below the options of --help. Its indented lines are examples.
std::string Footer(std::string_view footer) {
  std::string text;
  bool examples = false;
  while (!footer.empty()) {
    const std::string_view line = footer.substr(0, footer.find('\n'));
    footer.remove_prefix(std::min(footer.size(), line.size() + 1));
    if (line.empty()) continue;
    if (line == "Examples:" || line == "Example:") {
      text += ".SH EXAMPLES\n";
      continue;
    }
    const bool indented = line.starts_with("  ");
    if (indented != examples) text += indented ? ".nf\n" : ".fi\n.PP\n";
    examples = indented;
    text += Plain(line.substr(line.find_first_not_of(' '))) + "\n";
  }
  return text + (examples ? ".fi\n" : "");
}

std::string VerbPage(const CLI::App& verb) {
  const std::string name = "muster-" + verb.get_name();
  const std::string command = "muster " + verb.get_name();
  std::string page =
      Title(name) + Name(name, verb.get_description()) + ".SH SYNOPSIS\n" + Synopsis(verb, command);
  for (const CLI::App* below : Below(verb)) {
    page += ".br\n" + Synopsis(*below, command + " " + below->get_name());
  }
  page += ".SH OPTIONS\n" + Options(verb);
  for (const CLI::App* below : Below(verb)) {
    page += fmt::format(".SS {} {}\n{}.\n", Plain(verb.get_name()), Plain(below->get_name()),
                        Plain(below->get_description())) +
            Options(*below);
  }
  return page + Footer(verb.get_footer()) + ".SH SEE ALSO\n.BR muster (1)\n";
}

std::string MainPage(const CLI::App& app) {
  std::string what = app.get_description();
  what.erase(0, what.starts_with("Muster: ") ? std::string_view("Muster: ").size() : 0);
  std::string page = Title("muster") + Name("muster", what) + ".SH SYNOPSIS\n" + Bold("muster") +
                     " \\fIverb\\fR [\\fIoption\\fR]... [\\fIargument\\fR]...\n.SH VERBS\n";
  std::string pages;
  for (const std::string& verb : ListedVerbs(app)) {
    page += Item(Bold(verb), app.get_subcommand(verb)->get_description());
    pages += fmt::format("{}.BR {} (1)", pages.empty() ? "" : " ,\n", Plain("muster-" + verb));
  }
  return page + ".SH OPTIONS\n" + Options(app) + ".SH NOTES\n" + Footer(app.get_footer()) +
         ".SH SEE ALSO\n" + pages + "\n";
}

}  // namespace

std::map<std::string, std::string> ManPages(const CLI::App& app) {
  std::map<std::string, std::string> pages{{"muster.1", MainPage(app)}};
  for (const std::string& verb : ListedVerbs(app)) {
    pages["muster-" + verb + ".1"] = VerbPage(*app.get_subcommand(verb));
  }
  return pages;
}

}  // namespace muster
