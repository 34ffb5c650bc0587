#include "job/file/source_rules.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <variant>

#include "job/file/paths.h"

namespace muster::job_file {
namespace {

/// Reports what is wrong with a field of the dataset.
using Say = std::function<void(std::string_view field, std::string what)>;

/// The form of a kind of source in a job file.
struct Kind {
  std::string_view group;  // its fields, for messages
  std::string_view needs;  // a dataset with this field is of this kind
  bool (*given)(const DatasetDraft& draft);
  void (*check)(const DatasetDraft& draft, const Say& say);
  SourceSpec (*make)(const DatasetDraft& draft, const std::string& base_directory);
};

bool LinesGiven(const DatasetDraft& draft) {
  return !draft.lines.files.empty();
}

void CheckLines(const DatasetDraft&, const Say&) {}

SourceSpec MakeLines(const DatasetDraft& draft, const std::string& base_directory) {
  LinesSpec lines = draft.lines;
  const std::string escaped_base = EscapeGlob(base_directory);
  for (std::string& pattern : lines.files) pattern = Absolute(escaped_base, pattern);
  return lines;
}

bool TopicGiven(const DatasetDraft& draft) {
  return !draft.topic.topic.empty() || !draft.topic.brokers.empty();
}

/// Checks where a topic is read from and up to, as far as the job file alone shows it.
void CheckBounds(const TopicSpec& topic, const Say& say) {
  using Kind = StreamBound::Kind;
  const StreamBound &start = topic.start, &end = topic.end;
  if (start.kind == Kind::kTime && end.kind == Kind::kTime && end.time < start.time) {
    say("kafka.end", fmt::format("is before kafka.start, {}", ToString(start)));
  }
  if (start.kind != Kind::kOffsets || end.kind != Kind::kOffsets) return;
  for (const auto& [partition, offset] : start.offsets) {
    const auto ends = end.offsets.find(partition);
    if (ends == end.offsets.end() || ends->second >= offset) continue;
    say("kafka.end", fmt::format("partition {} ends at offset {}, but begins at offset {}",
                                 partition, ends->second, offset));
  }
}

void CheckNoHeader(const DatasetDraft& draft, std::string_view source, const Say& say) {
  if (!draft.lines.header) return;
  say("header", fmt::format("is allowed for files only, not for {}; remove it", source));
}

void CheckTopic(const DatasetDraft& draft, const Say& say) {
  const TopicSpec& topic = draft.topic;
  if (topic.topic.empty()) say("kafka.topic", "is missing");
  if (topic.brokers.empty()) say("kafka.brokers", "is missing");
  if (draft.spec.mode != DatasetMode::kTrain) {
    say("mode", "a topic cannot be evaluated; use files for mode evaluate");
  }
  if (draft.spec.epochs != 1) say("epochs", "a topic is read once; remove this field");
  if (draft.spec.shuffle != Shuffle::kNone)
    say("shuffle", "a topic is read in order and cannot be shuffled; remove this field");
  CheckNoHeader(draft, "a topic", say);
  for (const auto& [name, place] : topic.secrets) {
    if (topic.properties.contains(name)) {
      say("kafka.secrets", fmt::format("{} is also in kafka.properties; remove it there", name));
    }
  }
  CheckBounds(topic, say);
}

SourceSpec MakeTopic(const DatasetDraft& draft, const std::string& base_directory) {
  TopicSpec topic = draft.topic;
  constexpr std::string_view kFile = "file:";
  for (auto& [name, place] : topic.secrets) {
    if (!place.starts_with(kFile)) continue;
    place = std::string(kFile) + Absolute(base_directory, place.substr(kFile.size()));
  }
  return topic;
}

bool RangeGiven(const DatasetDraft& draft) {
  return draft.range.records > 0;
}

void CheckRange(const DatasetDraft& draft, const Say& say) {
  CheckNoHeader(draft, "record numbers", say);
}

SourceSpec MakeRange(const DatasetDraft& draft, const std::string&) {
  return draft.range;
}

constexpr Kind kKinds[] = {
    {"files", "files", LinesGiven, CheckLines, MakeLines},
    {"kafka", "kafka.topic", TopicGiven, CheckTopic, MakeTopic},
    {"records", "records", RangeGiven, CheckRange, MakeRange},
};
static_assert(std::size(kKinds) == std::variant_size_v<SourceSpec>);

std::string OthersNeed() {
  std::string text;
  for (size_t i = 1; i < std::size(kKinds); ++i) {
    text += fmt::format("{}{}", i == 1 ? "" : " or ", kKinds[i].needs);
  }
  return text;
}

}  // namespace

void CheckSource(const DatasetDraft& draft, const std::string& path,
                 std::vector<BrokenRule>* broken) {
  const Say say = [&](std::string_view field, std::string what) {
    broken->push_back({{fmt::format("{}.{}", path, field), path}, std::move(what)});
  };
  const Kind* first = nullptr;
  for (const Kind& kind : kKinds) {
    if (!kind.given(draft)) continue;
    if (first != nullptr) {
      say(first->group, fmt::format("a dataset has {} or {}, not both", first->group, kind.group));
    } else {
      first = &kind;
    }
    kind.check(draft, say);
  }
  if (first != nullptr) return;
  say(kKinds[0].needs, "is missing; give it, or " + OthersNeed());
  // If one of them is wrong, that is the error.
  for (const Kind& kind : kKinds) {
    broken->back().paths.push_back(fmt::format("{}.{}", path, kind.needs));
  }
}

SourceSpec SourceOf(const DatasetDraft& draft, const std::string& base_directory) {
  for (const Kind& kind : kKinds) {
    if (kind.given(draft)) return kind.make(draft, base_directory);
  }
  return {};
}

}  // namespace muster::job_file
