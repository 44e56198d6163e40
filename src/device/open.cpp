// Finding and opening devices.
#include <fmt/format.h>

#include "core/environment/environment.hpp"
#include "core/platform/system.hpp"
#include "device/launch/check.hpp"
#include "device/state.hpp"
#include "lockstep/device_names.hpp"

namespace lockstep {

std::string_view name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::webgpu: return "webgpu";
    case DeviceKind::interp: return "interp";
  }
  return "?";
}

namespace {

using device::BackendKind;

const BackendKind* kinds[] = {&device::cuda_backend(), &device::webgpu_backend(), &device::cpu_backend(),
                              &device::interp_backend()};

struct Request {
  const BackendKind* kind;
  int number;      // -1: the first
  bool automatic;  // software adapters do not count
  std::string text;
};

std::vector<Request> parse(std::string_view names) {
  std::vector<Request> requests;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view item = names.substr(begin, end - begin);
    begin = end + 1;
    const auto fail = [&] {
      throw InputError(fmt::format("device \"{}\"", item), "--device",
                       "auto, cpu, cuda[:N], webgpu[:N] or interp");
    };
    if (item == "auto") {
      for (int k = 0; k < 3; ++k) requests.push_back({kinds[k], -1, true, std::string(name(kinds[k]->kind))});
      continue;
    }
    const size_t colon = item.find(':');
    const std::string_view base = item.substr(0, colon);
    const BackendKind* kind = nullptr;
    for (const BackendKind* k : kinds)
      if (name(k->kind) == base) kind = k;
    if (!kind) fail();
    int number = -1;
    if (colon != std::string_view::npos) {
      const std::string digits(item.substr(colon + 1));
      if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos)
        fail();
      if (kind->kind == DeviceKind::cpu || kind->kind == DeviceKind::interp) fail();
      number = std::stoi(digits);
    }
    requests.push_back({kind, number, false, std::string(item)});
  }
  return requests;
}

int choose_number(const Request& request) {
  if (request.number >= 0) return request.number;
  if (request.kind->kind != DeviceKind::webgpu) return 0;
  if (request.automatic && !platform::graphics_node_present())
    throw UnsupportedError("no hardware adapter", "webgpu", "a GPU device node in /dev");
  // Hardware first; a software adapter only when requested by name.
  const std::vector<DeviceStatus> adapters = request.kind->list();
  int software = -1;
  for (int n = 0; n < int(adapters.size()); ++n) {
    if (!adapters[n].available) continue;
    if (!adapters[n].info.software) return n;
    if (software < 0) software = n;
  }
  if (request.automatic || software < 0)
    throw UnsupportedError(
        adapters.empty() || adapters[0].reason.empty() ? "no hardware adapter" : adapters[0].reason, "webgpu",
        request.automatic ? "a hardware adapter" : "an adapter");
  return software;
}

}  // namespace

void check_device_names(std::string_view names) { parse(names); }

Device Device::open(std::string_view names, const DeviceOptions& options) {
  environment::check();
  device::read_check_variable();
  constexpr int kMostThreads = 4096;
  if (options.threads < 0 || options.threads > kMostThreads)
    throw InputError(fmt::format("{} threads", options.threads), "DeviceOptions::threads",
                     fmt::format("0 (all) to {}", kMostThreads));
  std::string reasons;
  for (const Request& request : parse(names)) {
    try {
      auto state = std::make_shared<device::DeviceState>();
      state->backend = request.kind->open(choose_number(request), options);
      state->options = options;
      state->info = state->backend->info();
      if (options.lower_limits) {
        options.lower_limits(state->info.limits);
        state->backend->set_limits(state->info.limits);
      }
      // CUDA has a stream-ordered pool of its own; the interpreter must see every allocation afresh.
      const bool pooled = request.kind->kind == DeviceKind::cpu || request.kind->kind == DeviceKind::webgpu;
      state->pool.configure(
          state->backend, pooled ? std::max<int64_t>(state->backend->memory().total_bytes / 4, 1 << 20) : 0);
      Device device;
      device.state_ = std::move(state);
      return device;
    } catch (const UnsupportedError& error) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", request.text, error.what());
    } catch (const DeviceError& error) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", request.text, error.what());
    }
  }
  throw UnsupportedError(fmt::format("no device is available ({})", reasons),
                         fmt::format("--device {}", names), "one that works; `lockstep devices` lists them");
}

std::vector<DeviceStatus> Device::list() {
  std::vector<DeviceStatus> all;
  for (const BackendKind* kind : kinds)
    for (DeviceStatus& status : kind->list()) all.push_back(std::move(status));
  return all;
}

}  // namespace lockstep
