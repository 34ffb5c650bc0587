#include "scaler/rest/metric_fields.h"

#include <gmock/gmock.h>

#include "scaler/model/model.h"

namespace muster::scaler::rest {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

struct Part {
  static constexpr const char* kName = "Part";
  uint64_t inside = 0;
  static void Fields(auto& f, auto& p) { f(1, "inside", p.inside); }
};

struct Figures {
  uint64_t pulled_rows = 7;
  uint64_t wait_us = 1'500'000;
  std::chrono::microseconds held{250'000};
  std::optional<double> pressure_percent;
  bool open = true;
  std::string name = "a";
  std::string mode = "b";
  NodeState state = NodeState::kLost;
  Part part;
  std::vector<uint64_t> each = {1, 2};
  static void Fields(auto& f, auto& s) {
    f(1, "pulled_rows", s.pulled_rows);
    f(2, "wait_us", s.wait_us, {"Until a person came"});
    f(3, "held_us", s.held, {.says = "Now", .gauge = true});
    f(4, "pressure_percent", s.pressure_percent, {.says = "Of the time", .gauge = true});
    f(5, "open", s.open);
    f(6, "name", s.name);
    f.Choice(7, "mode", s.mode, {"b", "c"});
    f(8, "state", s.state);
    f(9, "part", s.part);
    f(10, "each", s.each);
  }
};

TEST(MetricFieldsTest, EveryNumberOfTheListAndNothingElse) {
  const std::vector<MetricField> metrics = MetricFields::Of("muster_x_", Figures{});
  std::vector<std::string> names;
  for (const MetricField& metric : metrics) names.push_back(metric.name);
  ASSERT_THAT(names, ElementsAre("muster_x_pulled_rows_total", "muster_x_wait_seconds_total",
                                 "muster_x_held_seconds", "muster_x_pressure_percent"));
  EXPECT_EQ(metrics[0].value, 7);
  EXPECT_EQ(metrics[0].help, "Pulled rows.");
  EXPECT_FALSE(metrics[0].gauge);
  EXPECT_EQ(metrics[1].value, 1.5);
  EXPECT_EQ(metrics[1].help, "Wait: Until a person came.");
  EXPECT_EQ(metrics[2].value, 0.25);
  EXPECT_TRUE(metrics[2].gauge);
  EXPECT_EQ(metrics[3].value, std::nullopt) << "not known is not 0";
}

TEST(MetricFieldsTest, FiguresOfWhatIsNotKnownKeepTheirPlaces) {
  Usage usage;
  EXPECT_EQ(usage.cpu, std::nullopt);
  const std::vector<MetricField> absent = MetricFields::Of("", usage);
  usage.cpu = std::chrono::seconds(2);
  const std::vector<MetricField> known = MetricFields::Of("", usage);
  ASSERT_THAT(known, SizeIs(absent.size()));
  for (size_t i = 0; i < known.size(); ++i) EXPECT_EQ(known[i].name, absent[i].name);
  EXPECT_EQ(known[0].value, 2);
}

}  // namespace
}  // namespace muster::scaler::rest
