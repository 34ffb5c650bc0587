#include "kubernetes/manifests/yaml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace muster::kubernetes {
namespace {

using nlohmann::json;

/// What a reader of YAML 1.1 takes for something else than text.
const std::vector<std::string>& Traps() {
  static const std::vector<std::string> traps = {
      "",           "yes",     "No",   "on",           "off",      "y",     "true", "NULL",
      "~",          "1",       "0644", "1.5",          "1e3",      "0x1F",  "-",    "- a",
      "a: b",       "a:",      "#a",   "a #b",         "*a",       "&a",    "!a",   "|",
      ">",          "%a",      "@a",   "`a",           "'a",       "\"a\"", "{a}",  "[a]",
      "a, b",       "?",       "a\tb", " a",           "a ",       "\n",    "a\n",  "a\n\n",
      "\na\n",      " a\nb\n", "a\nb", "a\n b\n\nc\n", "a\r\nb\n", "a\\b",  "\x01", "ü\nä\n",
      "2026-01-31", "12:30",   ".inf", "nan",          "<<",       "=",     "---",  "...",
      "a\nb \n",    "\t\n",    "1_000"};
  return traps;
}

TEST(YamlTextTest, TextsStayTexts) {
  for (const std::string& text : Traps()) {
    const YAML::Node read = YAML::Load(YamlOf({{"key", text}, {"list", json::array({text})}}));
    EXPECT_EQ(read["key"].as<std::string>(), text) << YamlOf({{"key", text}});
    EXPECT_EQ(read["list"][0].as<std::string>(), text) << YamlOf({{"key", text}});
    // A parser marks a text that has quotes, or is a block, with "!".
    const bool marked = read["key"].Tag() == "!";
    const bool word = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz/._-") == std::string::npos;
    EXPECT_TRUE(marked || word) << YamlOf({{"key", text}});
  }
}

TEST(YamlTextTest, NamesAreTextsToo) {
  for (const std::string& text : Traps()) {
    const YAML::Node read = YAML::Load(YamlOf({{text, 7}}));
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read.begin()->first.as<std::string>(), text);
    EXPECT_EQ(read.begin()->second.as<int>(), 7);
  }
}

TEST(YamlTextTest, WhatItLooksLike) {
  EXPECT_EQ(YamlOf({{"kind", "Job"},
                    {"empty", json::object()},
                    {"none", nullptr},
                    {"list", {{{"name", "a"}}, {{"name", "b"}, {"port", 7171}}}},
                    {"words", {"get", "*", true, 1.5}},
                    {"text", "a: 1\n  b: 2\n\nc\n"}}),
            R"(empty: {}
kind: Job
list:
  - name: a
  - name: b
    port: 7171
none: null
text: |
  a: 1
    b: 2

  c
words: [get, "*", true, 1.5]
)");
}

TEST(YamlTextTest, SeveralDocuments) {
  EXPECT_EQ(YamlOfAll({{{"a", 1}}, {{"b", 2}}}), "---\na: 1\n---\nb: 2\n");
}

}  // namespace
}  // namespace muster::kubernetes
