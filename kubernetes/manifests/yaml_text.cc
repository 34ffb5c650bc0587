#include "kubernetes/manifests/yaml_text.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::kubernetes {
namespace {

using nlohmann::json;

/// True if every parser reads `text` without quotes as a text.
bool IsPlain(std::string_view text) {
  // kubectl reads YAML 1.1, which has further words for true and false.
  constexpr std::array kWords = {"y",    "n",     "yes",  "no",  "on", "off",
                                 "true", "false", "null", "nan", "inf"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !(letter(text[0]) || text[0] == '/' || text[0] == '_')) return false;
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (std::ranges::find(kWords, small) != kWords.end() || text.back() == ':') return false;
  return std::ranges::all_of(text, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("_-./:+@").find(c) != std::string_view::npos;
  });
}

/// True if a block can hold exactly `text`. It must consist of lines of printable ASCII that all
/// end with a line break. The first line must be neither empty nor indented, because a parser takes
/// the indentation from it.
bool IsBlock(std::string_view text) {
  if (text.size() < 2 || !text.ends_with('\n') || text.ends_with("\n\n")) return false;
  if (text.find('\n') + 1 == text.size() || text[0] == ' ' || text[0] == '\n') return false;
  return std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

void EmitText(const std::string& text, YAML::Emitter* out) {
  if (IsBlock(text)) {
    // The emitter adds the last line break itself.
    *out << YAML::Literal << text.substr(0, text.size() - 1);
  } else if (IsPlain(text)) {
    *out << text;
  } else {
    *out << YAML::DoubleQuoted << text;
  }
}

void Emit(const json& value, YAML::Emitter* out) {
  if (value.is_object()) {
    if (value.empty()) *out << YAML::Flow;
    *out << YAML::BeginMap;
    for (const auto& [name, below] : value.items()) {
      *out << YAML::Key;
      EmitText(name, out);
      *out << YAML::Value;
      Emit(below, out);
    }
    *out << YAML::EndMap;
  } else if (value.is_array()) {
    const bool words = std::ranges::all_of(value, [](const json& below) {
      return !below.is_structured() && !(below.is_string() && IsBlock(below.get<std::string>()));
    });
    if (words) *out << YAML::Flow;
    *out << YAML::BeginSeq;
    for (const json& below : value) Emit(below, out);
    *out << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitText(value.get<std::string>(), out);
  } else if (value.is_null()) {
    *out << YAML::Null;
  } else {
    // Numbers, true and false look the same in JSON and YAML.
    *out << value.dump();
  }
}

}  // namespace

std::string YamlOf(const json& value) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  Emit(value, &out);
  return std::string(out.c_str(), out.size()) + "\n";
}

std::string YamlOfAll(const std::vector<json>& documents) {
  std::string text;
  for (const json& document : documents) text += "---\n" + YamlOf(document);
  return text;
}

}  // namespace muster::kubernetes
