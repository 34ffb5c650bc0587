#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/fields/fields.h"
#include "scaler/model/orders.h"

/// The part of model.h that is about what was decided, why, and by which policies.
namespace muster::scaler::rest {

/// A figure that a decision rests on.
struct Evidence {
  static constexpr const char* kName = "Evidence";
  std::string name;
  double value = 0;
  std::string unit;
  double window_s = 0;
  static void Fields(auto& f, auto& e) {
    f(0, "name", e.name);
    f(0, "value", e.value);
    f(0, "unit", e.unit);
    f(0, "window_s", e.window_s, {"Seconds over which it was taken; 0: at one moment"});
  }
};
/// The kinds of the scaler's events.
inline constexpr fields::Choices kEventKinds = {"decision", "outcome", "exit", "action", "note"};

/// What happened and why. docs/rest.md has the meaning of each field.
struct Event {
  static constexpr const char* kName = "Event";
  uint64_t id = 0;
  uint64_t wall_us = 0;
  std::string kind = "note";
  std::string policy;
  std::string target;
  std::string action;
  std::map<std::string, double> before;
  std::map<std::string, double> after;
  std::vector<Evidence> evidence;
  std::string because;
  bool dry_run = false;
  uint64_t cause_id = 0;
  std::string verdict;
  static void Fields(auto& f, auto& e) {
    f(0, "id", e.id, {"From 1, without gaps"});
    f(0, "wall_us", e.wall_us, {"Microseconds since the Unix epoch"});
    f.Choice(0, "kind", e.kind, kEventKinds);
    f(0, "policy", e.policy, {"Whose decision; empty: none, or a person's"});
    f(0, "target", e.target, {"A node, a policy, a dataset, or the job"});
    f(0, "action", e.action, {ActionsText()});
    f(0, "before", e.before, {"cpus, memory_bytes, workers, ..."});
    f(0, "after", e.after, {"The same names"});
    f(0, "evidence", e.evidence);
    f(0, "because", e.because, {"One sentence"});
    f(0, "dry_run", e.dry_run, {"Decided, and not done"});
    f(0, "cause_id", e.cause_id, {"The event that led to it; 0: none"});
    f.Choice(0, "verdict", e.verdict, {"", "helped", "no-change", "worse", "unknown"},
             {"Of an outcome; else empty"});
  }
};
struct EventList {
  static constexpr const char* kName = "EventList";
  std::vector<Event> events;
  uint64_t next_after = 0;
  static void Fields(auto& f, auto& l) {
    f(0, "events", l.events, {"Oldest first"});
    f(0, "next_after", l.next_after, {"Go on with this as after"});
  }
};
/// One event with what led to it and what came of it.
struct Explanation {
  static constexpr const char* kName = "Explanation";
  Event event;
  std::optional<Event> cause;
  std::vector<Event> effects;
  static void Fields(auto& f, auto& e) {
    f(0, "event", e.event);
    f(0, "cause", e.cause, {"What led to it"});
    f(0, "effects", e.effects, {"What came of it, its outcome among them"});
  }
};

/// Columns of equal length: value i was taken at times_us[i].
struct SampleSeries {
  static constexpr const char* kName = "SampleSeries";
  std::string node;
  std::string name;
  std::string unit;
  std::vector<double> values;
  static void Fields(auto& f, auto& s) {
    f(0, "node", s.node, {"Empty: the job's"});
    f(0, "name", s.name);
    f(0, "unit", s.unit);
    f(0, "values", s.values, {"One per time; null: not known"});
  }
};
struct Samples {
  static constexpr const char* kName = "Samples";
  std::vector<uint64_t> times_us;
  std::vector<SampleSeries> series;
  static void Fields(auto& f, auto& s) {
    f(0, "times_us", s.times_us, {"Microseconds since the Unix epoch, ascending"});
    f(0, "series", s.series);
  }
};

struct Policy {
  static constexpr const char* kName = "Policy";
  std::string name;
  std::string summary;
  bool paused = false;
  bool dry_run = false;
  uint64_t decisions = 0;
  uint64_t refused = 0;
  double cooldown_s = 0;
  std::map<std::string, double> options;
  uint64_t last_event_id = 0;
  static void Fields(auto& f, auto& p) {
    f(0, "name", p.name);
    f(0, "summary", p.summary, {"What it watches and does"});
    f(0, "paused", p.paused);
    f(0, "dry_run", p.dry_run, {"It decides, and nothing is done"});
    f(0, "decisions", p.decisions, {"In this run"});
    f(0, "refused", p.refused, {"Proposals held back by cooldown, budget or a pause"});
    f(0, "cooldown_s", p.cooldown_s);
    f(0, "options", p.options, {"Its thresholds by name"});
    f(0, "last_event_id", p.last_event_id, {"Its newest decision; 0: none"});
  }
};
struct PolicyList {
  static constexpr const char* kName = "PolicyList";
  std::vector<Policy> policies;
  static void Fields(auto& f, auto& l) { f(0, "policies", l.policies); }
};

}  // namespace muster::scaler::rest
