#include "verify/workload/history.h"

#include <charconv>
#include <utility>

namespace muster::verify {
namespace {

constexpr std::string_view kApplied = "applied";

std::string ToText(const ShardName& shard) {
  return shard.dataset + "/" + std::to_string(shard.epoch) + "/" + std::to_string(shard.index);
}

/// Removes and returns the text up to the next blank, and removes the blank.
std::string_view TakeWord(std::string_view* line) {
  const size_t end = line->find(' ');
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end == std::string_view::npos ? line->size() : end + 1);
  return word;
}

template <typename T>
bool ParseNumber(std::string_view text, T* number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return code == std::errc() && end == text.data() + text.size();
}

bool ParseAttempt(std::string_view line, Attempt* attempt) {
  if (!ParseNumber(TakeWord(&line), &attempt->at_ns) ||
      !ParseShardName(TakeWord(&line), &attempt->shard) ||
      !ParseNumber(TakeWord(&line), &attempt->step) ||
      !ParseNumber(TakeWord(&line), &attempt->run)) {
    return false;
  }
  attempt->ids.clear();
  while (!line.empty()) {
    if (!ParseNumber(TakeWord(&line), &attempt->ids.emplace_back())) return false;
  }
  return true;
}

bool ParseMark(std::string_view line, ShardMark* mark) {
  return ParseNumber(TakeWord(&line), &mark->at_ns) &&
         ParseShardName(TakeWord(&line), &mark->shard) &&
         ParseNumber(TakeWord(&line), &mark->run) && line.empty();
}

bool ParseApplied(std::string_view line, AppliedStep* applied) {
  return ParseNumber(TakeWord(&line), &applied->at_ns) &&
         ParseNumber(TakeWord(&line), &applied->step) &&
         ParseNumber(TakeWord(&line), &applied->digest) && line.empty();
}

std::string FormatMark(const std::string& word, const ShardMark& mark) {
  return word + " " + std::to_string(mark.at_ns) + " " + ToText(mark.shard) + " " +
         std::to_string(mark.run) + "\n";
}

}  // namespace

std::string FormatAttempt(const Attempt& attempt) {
  std::string line = "attempt " + std::to_string(attempt.at_ns) + " " + ToText(attempt.shard) +
                     " " + std::to_string(attempt.step) + " " + std::to_string(attempt.run);
  for (const uint64_t id : attempt.ids) line += " " + std::to_string(id);
  return line + "\n";
}

std::string FormatBegin(const ShardMark& mark) {
  return FormatMark("begin", mark);
}

std::string FormatFinish(const ShardMark& mark) {
  return FormatMark("finish", mark);
}

std::string FormatApplied(const AppliedStep& applied) {
  return std::string(kApplied) + " " + std::to_string(applied.at_ns) + " " +
         std::to_string(applied.step) + " " + std::to_string(applied.digest) + "\n";
}

std::optional<uint64_t> LastApplied(std::string_view end) {
  std::optional<uint64_t> last;
  for (size_t at; (at = end.find('\n')) != std::string_view::npos; end.remove_prefix(at + 1)) {
    std::string_view line = end.substr(0, at);
    AppliedStep applied;
    if (TakeWord(&line) == kApplied && ParseApplied(line, &applied)) last = applied.step;
  }
  return last;
}

bool ParseShardName(std::string_view text, ShardName* name) {
  const size_t first = text.find('/');
  const size_t last = text.rfind('/');
  if (first == std::string_view::npos || first == 0 || first == last) return false;
  name->dataset = text.substr(0, first);
  return ParseNumber(text.substr(first + 1, last - first - 1), &name->epoch) &&
         ParseNumber(text.substr(last + 1), &name->index);
}

size_t ParseHistory(std::string_view text, const HistoryVisitor& visitor) {
  Attempt attempt;
  ShardMark mark;
  AppliedStep applied;
  size_t number = 0;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    ++number;
    std::string_view line = text.substr(0, end);
    const std::string_view word = TakeWord(&line);
    if (word == "attempt" && ParseAttempt(line, &attempt)) {
      visitor.attempt(attempt);
    } else if (word == "begin" && ParseMark(line, &mark)) {
      visitor.begin(mark);
    } else if (word == "finish" && ParseMark(line, &mark)) {
      visitor.finish(mark);
    } else if (word == kApplied && ParseApplied(line, &applied)) {
      visitor.applied(applied);
    } else {
      return number;
    }
  }
  return 0;
}

}  // namespace muster::verify
