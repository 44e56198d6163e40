#include "core/reports/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/fields.hpp"

namespace lockstep {

void add_fields(nlohmann::ordered_json& object, const Fields& fields) {
  for (const Field& field : fields) {
    auto& slot = object[field.name];
    if (const auto* number = std::get_if<double>(&field.value)) {
      slot = std::isfinite(*number) ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
    } else {
      std::visit([&](const auto& value) { slot = value; }, field.value);
    }
  }
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1023.95 && unit < 5; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 0.9995) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} µs", seconds * 1e6);
}

void RunSummary::set_device(std::string device) {
  std::lock_guard lock(mutex_);
  device_ = std::move(device);
}
void RunSummary::set_numerics(std::string numerics) {
  std::lock_guard lock(mutex_);
  numerics_ = std::move(numerics);
}

void RunSummary::add(const StageRecord& record) {
  std::lock_guard lock(mutex_);
  auto same = std::find_if(stages_.begin(), stages_.end(), [&](const StageRecord& s) {
    return s.stage == record.stage && s.device == record.device;
  });
  if (same == stages_.end()) {
    stages_.push_back(record);
    return;
  }
  same->seconds += record.seconds;
  same->bytes_to_device += record.bytes_to_device;
  same->bytes_from_device += record.bytes_from_device;
  same->launches += record.launches;
  same->fallbacks += record.fallbacks;
  same->runs += record.runs;
}

void RunSummary::peak_device_bytes(int64_t bytes) {
  std::lock_guard lock(mutex_);
  peak_device_bytes_ = std::max(peak_device_bytes_, bytes);
}
int64_t RunSummary::peak_device_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_device_bytes_;
}
std::vector<StageRecord> RunSummary::stages() const {
  std::lock_guard lock(mutex_);
  return stages_;
}
std::map<std::string, int64_t> RunSummary::fallbacks() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, int64_t> counts;
  for (const StageRecord& s : stages_) {
    if (s.fallbacks > 0) counts[s.stage] += s.fallbacks;
  }
  return counts;
}
double RunSummary::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RunSummary::add_to(nlohmann::ordered_json& object) const {
  const auto counts = fallbacks();
  std::lock_guard lock(mutex_);
  object["device"] = device_;
  object["numerics"] = numerics_;
  auto& rows = object["stages"] = nlohmann::ordered_json::array();
  for (const StageRecord& s : stages_) {
    rows.push_back({{"stage", s.stage},
                    {"device", s.device},
                    {"seconds", s.seconds},
                    {"bytes_to_device", s.bytes_to_device},
                    {"bytes_from_device", s.bytes_from_device},
                    {"launches", s.launches},
                    {"fallbacks", s.fallbacks}});
  }
  object["fallbacks"] = counts;
  object["peak_device_bytes"] = peak_device_bytes_;
  object["seconds"] = seconds();
}

std::string RunSummary::table() const {
  std::lock_guard lock(mutex_);
  size_t stage_width = 5, device_width = 6;
  int64_t fallback_count = 0;
  for (const StageRecord& s : stages_) {
    stage_width = std::max(stage_width, s.stage.size());
    device_width = std::max(device_width, s.device.size());
    fallback_count += s.fallbacks;
  }
  std::string text =
      fmt::format("{:<{}}  {:<{}} {:>9} {:>11} {:>11} {:>9} {:>9}\n", "stage", stage_width, "device",
                  device_width, "time", "to device", "from device", "launches", "fallbacks");
  for (const StageRecord& s : stages_) {
    text += fmt::format("{:<{}}  {:<{}} {:>9} {:>11} {:>11} {:>9} {:>9}\n", s.stage, stage_width, s.device,
                        device_width, human_seconds(s.seconds), human_bytes(uint64_t(s.bytes_to_device)),
                        human_bytes(uint64_t(s.bytes_from_device)), s.launches, s.fallbacks);
  }
  text += fmt::format("total {} on {}, numerics {}, peak device memory {}, {} fallback{}",
                      human_seconds(seconds()), device_, numerics_, human_bytes(uint64_t(peak_device_bytes_)),
                      fallback_count, fallback_count == 1 ? "" : "s");
  return text;
}

}  // namespace lockstep
