#include "scaler/sensor/process_meter.h"

#include <algorithm>

namespace muster::scaler {

void ProcessMeter::OnReading(const std::string& name, uint64_t pid, const NodeUsage& usage,
                             TimePoint now) {
  Process& process = processes_[name];
  if (process.pid != pid) process = {.pid = pid, .newest = {}, .cpu = {}};
  const uint64_t peak = std::max(process.newest.memory_peak_bytes, usage.memory_bytes);
  process.newest = usage;
  process.newest.memory_peak_bytes = std::max(peak, usage.memory_peak_bytes);
  if (!usage.cpu.has_value()) return;
  process.cpu.emplace_back(now, *usage.cpu);
  while (process.cpu.size() > 2 && now - process.cpu[1].first >= window_) process.cpu.pop_front();
}

std::optional<rest::Usage> ProcessMeter::UsageOf(const std::string& name, uint64_t pid) const {
  const auto found = processes_.find(name);
  if (found == processes_.end() || found->second.pid != pid) return std::nullopt;
  const Process& process = found->second;
  rest::Usage usage{process.newest};
  if (process.cpu.size() < 2) return usage;
  const auto& [begin, before] = process.cpu.front();
  const auto& [end, after] = process.cpu.back();
  const std::chrono::duration<double> took = end - begin;
  const std::chrono::duration<double> used = after - before;
  if (took.count() > 0) usage.cpus = std::max(0.0, used / took);
  return usage;
}

}  // namespace muster::scaler
