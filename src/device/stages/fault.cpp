#include "device/stages/fault.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "core/environment/environment.hpp"
#include "core/platform/threads.hpp"
#include "lockstep/context.hpp"

namespace lockstep {
namespace device {
namespace {

struct Fault {
  std::string stage;
  DeviceFault operation = DeviceFault::launch;
  int64_t nth = 1;
};
Mutex mutex;
Fault armed;
int64_t seen = 0;
std::atomic<bool> any{false};
std::once_flag environment_read;

void arm(std::string_view text, std::string_view where) {
  std::lock_guard lock(mutex);
  seen = 0;
  any = false;
  if (text.empty()) return;
  const auto fail = [&] {
    throw InputError(fmt::format("fault \"{}\"", text), where,
                     "<stage>:<allocation|compile|launch|device_lost>[:<nth>]");
  };
  const size_t first = text.find(':');
  if (first == 0 || first == std::string_view::npos) fail();
  const size_t second = text.find(':', first + 1);
  const std::string operation(
      text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1));
  Fault fault{std::string(text.substr(0, first)), DeviceFault::launch, 1};
  bool known = false;
  for (DeviceFault f :
       {DeviceFault::allocation, DeviceFault::compile, DeviceFault::launch, DeviceFault::device_lost})
    if (name(f) == operation) fault.operation = f, known = true;
  if (!known) fail();
  if (second != std::string_view::npos) {
    const std::string nth(text.substr(second + 1));
    char* end = nullptr;
    fault.nth = std::strtoll(nth.c_str(), &end, 10);
    if (nth.empty() || *end || fault.nth < 1) fail();
  }
  armed = fault;
  any = true;
}

}  // namespace

void check_fault(DeviceFault operation) {
  std::call_once(environment_read, [] {
    if (const char* text = environment::text("LOCKSTEP_FAULT"); text && !any) arm(text, "LOCKSTEP_FAULT");
  });
  if (!any.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex);
  if (!any || armed.stage != current_stage() || armed.operation != operation) return;
  if (++seen == armed.nth)
    throw DeviceError(operation, fmt::format("injected fault ({} {})", name(operation), seen));
}

}  // namespace device

void set_fault(std::string_view text) {
  std::call_once(device::environment_read, [] {});
  device::arm(text, "set_fault");
}

}  // namespace lockstep
