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

/// Steps the policies through views of the job, lets the arbiter decide, records every end,
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
    /// By name; at the beginning, those of the plan.
    std::set<std::string> paused;
    /// Decisions of an earlier scaler that are older get no other outcome than unknown.
    std::chrono::seconds adopt_max{600};
  };
  Decider(const Options& options, EventSink sink);

  /// The events of the scalers before this one, oldest first: what was not measured is, or is
  /// closed as unknown; cooldowns and the budget of interventions go on. Those before `run_began`
  /// are of earlier runs. `wall` and `now` are the same moment.
  void Adopt(const std::vector<rest::Event>& events, WallTime run_began, WallTime wall,
             TimePoint now);

  /// About once a second, and at once when a node has ended. Orders are to be carried out in order.
  std::vector<Ordered> Step(const JobView& view);

  struct Taken {
    rest::Event event;
    std::vector<Ordered> orders;
  };
  /// An order of a person that Judge() has granted. `view` as it was granted by. A number of
  /// workers holds, and a worker that is sent away is not replaced: the policy that would do so is
  /// paused, which is an event of its own, until a user resumes it or the job ends.
  Taken Take(const Granted& granted, const JobView& view);
  /// A worker left for good without an order here: another program has asked the master itself. The
  /// same orders as after a person's.
  std::vector<Ordered> SentAway(const std::string& worker, const JobView& view);

  /// What the keeper of nodes did by itself to a node, or to the "job", as a decision of
  /// "supervision"; nothing when it is known already.
  void Tell(Action action, const std::string& target, const std::string& because,
            const JobView& view);
  /// The order of this event could not be carried out.
  void Fail(uint64_t event_id, const std::string& why);

  /// The newest change of the number of workers that an earlier scaler of this run made, of those
  /// that Adopt() was given; none: it made none.
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
  /// Why nodes end that were told to end, by target.
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
  /// The decision of an earlier run that gave this node the same limits before its first start. To
  /// repeat it changes nothing. nullptr: there is none.
  const rest::Event* GivenBefore(const rest::Event& event, const JobView& view) const;
  /// Decisions that wait for their outcome, and for the ends that they cause.
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
