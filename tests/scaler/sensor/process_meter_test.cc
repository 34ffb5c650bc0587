#include "scaler/sensor/process_meter.h"

#include <gtest/gtest.h>

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kPid = 7;

NodeUsage Used(std::chrono::microseconds cpu, uint64_t bytes) {
  NodeUsage usage;
  usage.cpu = cpu;
  usage.memory_bytes = bytes;
  return usage;
}

TEST(ProcessMeterTest, ProcessorsAreTheMeanOverTheWindow) {
  ProcessMeter meter(seconds(3));
  EXPECT_FALSE(meter.UsageOf("master", kPid).has_value());
  // Busy for 2 s, then half as busy.
  for (int second = 0; second <= 10; ++second) {
    const int half = std::min(second, 2) * 1'000 + std::max(0, second - 2) * 500;
    meter.OnReading("master", kPid, Used(milliseconds(half), second == 4 ? 900 : 100),
                    TimePoint(seconds(second)));
    if (second == 1) {
      EXPECT_DOUBLE_EQ(meter.UsageOf("master", kPid)->cpus, 1.0);
    }
  }
  const std::optional<rest::Usage> usage = meter.UsageOf("master", kPid);
  ASSERT_TRUE(usage.has_value());
  EXPECT_DOUBLE_EQ(usage->cpus, 0.5);
  EXPECT_EQ(usage->cpu, milliseconds(6'000));
  EXPECT_EQ(usage->memory_bytes, 100u);
  EXPECT_EQ(usage->memory_peak_bytes, 900u);
}

TEST(ProcessMeterTest, AnotherProcessBeginsAnew) {
  ProcessMeter meter(seconds(3));
  meter.OnReading("master", kPid, Used(seconds(50), 900), TimePoint(seconds(1)));
  meter.OnReading("master", kPid + 1, Used(seconds(0), 100), TimePoint(seconds(2)));
  EXPECT_FALSE(meter.UsageOf("master", kPid).has_value()) << "figures of another process";
  EXPECT_EQ(meter.UsageOf("master", kPid + 1)->memory_peak_bytes, 100u);
  EXPECT_EQ(meter.UsageOf("master", kPid + 1)->cpus, 0);
  meter.Forget("master");
  EXPECT_FALSE(meter.UsageOf("master", kPid + 1).has_value());
}

}  // namespace
}  // namespace muster::scaler
