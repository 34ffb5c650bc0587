#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/run/run_supervisor.h"

namespace muster {

inline constexpr ExitStatus kKilled{.signal = SIGKILL};
inline constexpr ExitStatus kClean{};
inline constexpr ExitStatus kRefused{.signal = 0, .code = 2};

/// Plays the shell: starts processes at once and keeps what was asked for.
class RunSupervisorTest : public ::testing::Test {
 protected:
  RunSupervisorTest() {
    options_.restarts = {.crash_loop_exits = 3,
                         .backoff_initial = std::chrono::milliseconds(500),
                         .backoff_max = std::chrono::seconds(30)};
    view_.state = JobState::kRunning;
  }

  void Begin() { supervisor_.emplace(options_); }

  void Step(const RunEvent& event) {
    std::vector<std::string> started;
    for (const RunEffect& effect : supervisor_->Step(event, now_)) {
      if (const auto* start = std::get_if<StartNode>(&effect)) {
        did_.push_back("start " + start->node);
        started.push_back(start->node);
      } else if (const auto* stop = std::get_if<StopNode>(&effect)) {
        did_.push_back("stop " + stop->node);
      } else if (const auto* kill = std::get_if<KillNode>(&effect)) {
        did_.push_back("kill " + kill->node);
      } else if (const auto* tell = std::get_if<TellMaster>(&effect)) {
        told_.push_back(*tell);
      } else if (std::holds_alternative<AskDrain>(effect)) {
        did_.push_back("drain");
      } else if (std::holds_alternative<AskEndNodes>(effect)) {
        did_.push_back("ask the scaler to end nodes");
      } else if (std::holds_alternative<EndNodes>(effect)) {
        did_.push_back("end nodes");
      } else if (const auto* cancel = std::get_if<AskCancel>(&effect)) {
        did_.push_back("cancel");
        cancel_reason_ = cancel->reason;
      } else if (const auto* note = std::get_if<Note>(&effect)) {
        notes_.push_back(note->text);
        if (note->answer) answers_.push_back(note->text);
      }
    }
    for (const std::string& node : started) {
      if (short_) {
        Step(NodeExited{.node = node,
                        .exit = {.signal = 0, .code = 126},
                        .last_words = "cannot create a pipe: Too many open files\n",
                        .not_started = true});
        continue;
      }
      pids_[node] = ++last_pid_;
      Step(NodeStarted{node, pids_[node]});
    }
  }

  /// Time passes in which the scaler beats, unless it `silent_`, and the master does not answer.
  void After(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds kTick{1'000};
    for (; time > std::chrono::milliseconds(0); time -= kTick) {
      now_ += std::min(time, kTick);
      if (!silent_) Step(ScalerBeat{});
      Step(Tick{});
    }
  }
  /// One tick after `gap`: more than two seconds, and the supervisor takes it for its own pause.
  void StandStill(std::chrono::milliseconds gap) {
    now_ += gap;
    Step(Tick{});
  }
  void Answer() { Step(MasterAnswered{view_, now_}); }
  /// Time passes in which the master answers every second.
  void Pass(std::chrono::milliseconds time) {
    for (; time > std::chrono::milliseconds(0); time -= std::chrono::seconds(1)) {
      After(std::min(time, std::chrono::milliseconds(1'000)));
      Answer();
    }
  }
  void Progress() {
    ++view_.done_seq;
    Answer();
  }

  void Exit(const std::string& node, ExitStatus exit) {
    Step(NodeExited{node, std::exchange(pids_[node], 0), exit, {}, "last words\n"});
  }

  std::vector<std::string> Did() { return std::exchange(did_, {}); }

  void RunToTraining() {
    Begin();
    Step(Tick{});
    Answer();
    Step(ScalerBeat{});
    Answer();
    Did();
    told_.clear();
  }
  /// The job has ended, the scaler with it, and the last answer comes.
  void ExpectEnd(RunOutcome::State state) {
    Exit("scaler", kClean);
    now_ += std::chrono::milliseconds(1);
    Answer();
    EXPECT_THAT(Did(), ::testing::ElementsAre("end nodes", "stop master"));
    EXPECT_FALSE(supervisor_->outcome().has_value());
    Exit("master", kClean);
    ASSERT_TRUE(supervisor_->outcome().has_value());
    EXPECT_EQ(supervisor_->outcome()->state, state);
  }

  RunSupervisorOptions options_;
  std::optional<RunSupervisor> supervisor_;
  TimePoint now_{std::chrono::seconds(100)};
  MasterView view_;
  bool silent_ = false;
  bool short_ = false;  // the machine, of what a start needs
  std::map<std::string, uint64_t> pids_;
  uint64_t last_pid_ = 1000;
  std::vector<std::string> did_;
  std::vector<std::string> notes_;
  std::vector<std::string> answers_;  // those shown even to people who want no progress
  std::vector<TellMaster> told_;
  std::string cancel_reason_;
};

}  // namespace muster
