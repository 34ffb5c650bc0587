#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scaler/decision/human_orders.h"
#include "scaler/decision/ordered.h"
#include "scaler/decision/outcome_watch.h"
#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"

namespace muster::scaler {

/// Makes an event durable, and gives it back with its id and time (EventLog::Append).
using EventSink = std::function<rest::Event(rest::Event)>;

/// Steps the policies through views of the job and lets the arbiter decide. It records every end,
/// decision and outcome as an event, and returns the orders. An event is recorded before its order
/// is given. So every action can be explained, whichever process dies in between.
///
/// Each end is one event. A decision names the end that it answers as its cause, and an outcome
/// names its decision. Refused proposals are notes, as rarely as the arbiter allows. A job that is
/// over is only watched; in a draining job, only servers are helped.
///
/// Deterministic but for the sink; a value with one owner; not thread-safe.
class Decider {
 public:
  struct Options {
    PolicyOptions policies;
    Arbiter::Options arbiter;
    OutcomeWatch::Options outcomes;
    /// The names of paused policies. At the beginning, they are those of the plan.
    std::set<std::string> paused;
    /// If a decision of an earlier scaler is older than this, its outcome is unknown.
    std::chrono::seconds adopt_max{600};
  };
  Decider(const Options& options, EventSink sink);

  /// Takes over the events of the scalers before this one, oldest first. Decisions without an
  /// outcome are measured now, or closed as unknown. Cooldowns and the budget of interventions
  /// continue. Events before `run_began` belong to earlier runs. `wall` and `now` are the same
  /// moment.
  void Adopt(const std::vector<rest::Event>& events, WallTime run_began, WallTime wall,
             TimePoint now);

  /// Call it about once a second, and at once when a node has ended. The caller carries out the
  /// orders in their order.
  std::vector<Ordered> Step(const JobView& view);

  struct Taken {
    rest::Event event;
    std::vector<Ordered> orders;
  };
  /// Takes an order of a person that Judge() has granted for this `view`. If the order sets the
  /// number of workers or sends a worker away, it pauses the policy that would undo it. The policy
  /// stays paused until a user resumes it or the job ends. The pause is an event of its own.
  Taken Take(const Granted& granted, const JobView& view);
  /// Another program has asked the master itself to send this worker away for good. Returns the
  /// same orders as after such an order of a person.
  std::vector<Ordered> SentAway(const std::string& worker, const JobView& view);

  /// Records what the keeper of nodes did by itself to a node, or to the "job", as a decision of
  /// "supervision". Does nothing if it is known already.
  void Tell(Action action, const std::string& target, const std::string& because,
            const JobView& view);
  /// The order of this event could not be carried out.
  void Fail(uint64_t event_id, const std::string& why);

  /// The newest change of the number of workers among the events that Adopt() was given, if an
  /// earlier scaler of this run made one.
  const std::optional<ActionTaken>& adopted_scale() const { return adopted_scale_; }

  const std::set<std::string>& paused() const { return arbiter_.paused(); }
  std::vector<rest::Policy> policies() const;

 private:
  struct Counts {
    uint64_t decisions = 0;
    uint64_t refused = 0;
    uint64_t last_event_id = 0;
  };
  struct Exit {
    uint32_t start = 0;
    uint64_t event_id = 0;
  };
  /// Why the nodes of a target end, if they were told to.
  struct Asked {
    uint64_t event_id = 0;
    uint32_t nodes = 0;  // that have yet to end
  };
  /// After a person's order `event`: the orders that keep policies from undoing it.
  std::vector<Ordered> Hold(const rest::Event& event, const JobView& view);
  std::vector<Ordered> HoldWorkers(uint64_t cause_id, const std::string& why, const JobView& view);
  void TellExits(const JobView& view);
  uint64_t CauseOfExit(const NodeEnd& end);
  void CountDecision(const rest::Event& event);
  /// If an earlier run gave this node the same limits before its first start, the event of that
  /// decision; else nullptr. Such a decision changes nothing when it is repeated.
  const rest::Event* GivenBefore(const rest::Event& event, const JobView& view) const;
  /// Remembers a decision until its outcome is known, and until the ends that it causes have come.
  void Follow(const rest::Event& event, TimePoint at);
  void NoteAsked(const rest::Event& event);
  /// Adds the evidence against which its outcome will be measured.
  rest::Event WithFigures(rest::Event event, const JobView& view) const;
  Order OrderOf(const Proposal& proposal, const JobView& view) const;

  Options options_;
  EventSink sink_;
  std::vector<std::unique_ptr<Policy>> policies_;
  Arbiter arbiter_;
  OutcomeWatch outcomes_;
  std::map<std::string, Counts> counts_;  // by policy
  std::map<std::string, Exit> exits_;     // the newest, by node
  std::map<std::string, Asked> asked_;
  std::set<std::string> supervised_;  // already recorded
  /// The newest event of earlier runs that gave a node its limits, by node.
  std::map<std::string, rest::Event> earlier_limits_;
  std::optional<ActionTaken> adopted_scale_;
  bool stopping_ = false;
};

}  // namespace muster::scaler
