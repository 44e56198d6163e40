#include "core/reports/telemetry.hpp"

#include <atomic>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/platform/threads.hpp"
#include "core/reports/log.hpp"

namespace lockstep {

struct Telemetry::State {
  Mutex mutex;
  std::atomic<bool> enabled{false};
  std::unique_ptr<AtomicFile> file;
  std::chrono::steady_clock::time_point start;

  void write(nlohmann::ordered_json& object) {
    std::lock_guard lock(mutex);
    if (!file) return;
    object["time_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    file->write(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
};

Telemetry::Telemetry() : state_(std::make_unique<State>()) {}
Telemetry::~Telemetry() {
  try {
    close();
  } catch (const std::exception& e) { logging::error("telemetry is lost: {}", e.what()); }
}

Telemetry& Telemetry::global() {
  static Telemetry instance;
  return instance;
}

void Telemetry::open(const std::filesystem::path& path) {
  std::lock_guard lock(state_->mutex);
  state_->file = std::make_unique<AtomicFile>(path);
  state_->start = std::chrono::steady_clock::now();
  state_->enabled = true;
}

bool Telemetry::enabled() const { return state_->enabled; }

void Telemetry::record(const StageRecord& stage, const Fields& extra) {
  if (!enabled()) return;
  nlohmann::ordered_json object = {{"stage", stage.stage},
                                   {"device", stage.device},
                                   {"seconds", stage.seconds},
                                   {"bytes_to_device", stage.bytes_to_device},
                                   {"bytes_from_device", stage.bytes_from_device},
                                   {"launches", stage.launches},
                                   {"fallbacks", stage.fallbacks}};
  add_fields(object, extra);
  state_->write(object);
}

void Telemetry::event(std::string_view name, const Fields& fields) {
  if (!enabled()) return;
  nlohmann::ordered_json object = {{"event", name}};
  add_fields(object, fields);
  state_->write(object);
}

void Telemetry::close() {
  std::lock_guard lock(state_->mutex);
  state_->enabled = false;
  if (auto file = std::move(state_->file)) file->commit();
}

}  // namespace lockstep
