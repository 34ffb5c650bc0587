#include "ps/core/master_absence.h"

#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Verdict = MasterAbsence::Verdict;

TEST(MasterAbsence, WithoutALimitItGoesOn) {
  const TimePoint begin;
  MasterAbsence absence({}, begin);
  EXPECT_EQ(absence.Judge(begin + hours(1000)), Verdict::kGoOn);
  absence.Answered(begin, /*may_end=*/false);
  EXPECT_EQ(absence.Judge(begin + hours(1000)), Verdict::kGoOn);
}

TEST(MasterAbsence, EachAnswerBeginsTheTimeAgain) {
  const TimePoint begin;
  MasterAbsence absence({.max = hours(1)}, begin);
  EXPECT_EQ(absence.Judge(begin + hours(1) - seconds(1)), Verdict::kGoOn);
  EXPECT_EQ(absence.Judge(begin + hours(1)), Verdict::kTooLong);
  absence.Answered(begin + hours(1), /*may_end=*/false);
  EXPECT_EQ(absence.Judge(begin + hours(2) - seconds(1)), Verdict::kGoOn);
}

TEST(MasterAbsence, AfterTheEndItIsShort) {
  const TimePoint begin;
  MasterAbsence absence({.max = hours(1)}, begin);
  absence.Answered(begin, /*may_end=*/true);
  EXPECT_EQ(absence.Judge(begin + seconds(59)), Verdict::kGoOn);
  EXPECT_EQ(absence.Judge(begin + seconds(60)), Verdict::kOver);
  // A drain that was taken back, or the next run.
  absence.Answered(begin + seconds(61), /*may_end=*/false);
  EXPECT_EQ(absence.Judge(begin + seconds(200)), Verdict::kGoOn);
}

}  // namespace
}  // namespace muster::ps
