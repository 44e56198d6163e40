#include "core/reports/trace.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/platform/system.hpp"
#include "core/platform/threads.hpp"
#include "core/reports/log.hpp"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
constexpr size_t kFlushBytes = 1 << 20;

int thread_number() {
  static std::atomic<int> next{1};
  thread_local const int mine = next.fetch_add(1);
  return mine;
}

}  // namespace

struct Trace::State {
  Mutex mutex;
  std::atomic<bool> enabled{false};
  std::unique_ptr<AtomicFile> file;
  std::string pending;
  std::map<std::string, int, std::less<>> tracks;

  int track_number(std::string_view track) {
    if (track.empty()) return thread_number();
    if (auto known = tracks.find(track); known != tracks.end()) return known->second;
    const int number = 1000 + static_cast<int>(tracks.size());
    tracks.emplace(track, number);
    append({{"ph", "M"},
            {"name", "thread_name"},
            {"pid", platform::process_id()},
            {"tid", number},
            {"args", {{"name", track}}}});
    return number;
  }
  void append(const ordered_json& event) {
    pending += ",\n";
    pending += event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    if (pending.size() > kFlushBytes) flush();
  }
  void flush() {
    file->write(pending);
    pending.clear();
  }
};

Trace::Trace() : state_(std::make_unique<State>()) { now_us(); }
Trace::~Trace() {
  try {
    close();
  } catch (const std::exception& e) { logging::error("the trace is lost: {}", e.what()); }
}

Trace& Trace::global() {
  static Trace instance;
  return instance;
}

double Trace::now_us() {
  static const auto origin = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - origin).count();
}

void Trace::open(const std::filesystem::path& path) {
  std::lock_guard lock(state_->mutex);
  state_->file = std::make_unique<AtomicFile>(path);
  const ordered_json process = {{"ph", "M"},
                                {"name", "process_name"},
                                {"pid", platform::process_id()},
                                {"args", {{"name", "lockstep"}}}};
  state_->pending = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + process.dump();
  state_->tracks.clear();
  state_->enabled = true;
}

bool Trace::enabled() const { return state_->enabled; }

void Trace::span(std::string_view name, std::string_view category, double start_us, double duration_us,
                 std::string_view track, const Fields& fields) {
  if (!enabled()) return;
  ordered_json event = {
      {"ph", "X"}, {"name", name}, {"cat", category}, {"ts", start_us}, {"dur", duration_us}};
  event["pid"] = platform::process_id();
  if (!fields.empty()) add_fields(event["args"], fields);
  std::lock_guard lock(state_->mutex);
  if (!state_->file) return;
  event["tid"] = state_->track_number(track);
  state_->append(event);
}

void Trace::counter(std::string_view name, double value) {
  if (!enabled()) return;
  ordered_json event = {{"ph", "C"}, {"name", name}, {"ts", now_us()}, {"pid", platform::process_id()}};
  add_fields(event["args"], {{"value", value}});
  std::lock_guard lock(state_->mutex);
  if (state_->file) state_->append(event);
}

void Trace::close() {
  std::lock_guard lock(state_->mutex);
  state_->enabled = false;
  if (!state_->file) return;
  state_->pending += "\n]}\n";
  state_->flush();
  auto file = std::move(state_->file);
  file->commit();
}

namespace {
std::atomic<const ScopeListener*> scope_listener{nullptr};
}
void TimedScope::listen(const ScopeListener* listener) { scope_listener = listener; }

TimedScope::TimedScope(std::string name, std::string category, Fields fields)
    : name_(std::move(name)),
      category_(std::move(category)),
      fields_(std::move(fields)),
      start_us_(Trace::now_us()),
      listener_(scope_listener) {
  if (listener_) listener_->begin(name_.c_str());
}

TimedScope::~TimedScope() {
  if (listener_) listener_->end();
  Trace& trace = Trace::global();
  if (!trace.enabled()) return;
  try {
    trace.span(name_, category_, start_us_, Trace::now_us() - start_us_, {}, fields_);
  } catch (const std::exception& e) { logging::error("the trace is incomplete: {}", e.what()); }
}

}  // namespace lockstep
