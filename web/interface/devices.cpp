// Devices, buffers, launches and reductions.
#include "arrays.hpp"
#include "calls.hpp"
#include "ir/bindings.hpp"
#include "lockstep/device.hpp"
#include "lockstep/primitives.hpp"
#include "objects.hpp"
#include "page_context.hpp"

namespace lockstep::web {

Objects& objects() {
  static Objects all;
  return all;
}

namespace {

Shape shape_of(const Json& request, const char* name, size_t most) {
  Shape shape;
  for (const int64_t size : wholes(request, name, most)) shape.push_back(size);
  return shape;
}

const Device& device_of(const Json& request) { return objects().devices.at(member(request, "device")); }
const Buffer& buffer_of(const Json& request, const char* name = "buffer") {
  return objects().buffers.at(member(request, name));
}

Json info_of(const Device& device) {
  const DeviceInfo& info = device.info();
  const Limits& limits = info.limits;
  return {{"name", info.name},
          {"kind", name(info.kind)},
          {"description", info.description},
          {"architecture", info.architecture},
          {"software", info.software},
          {"limits",
           {{"group_lanes", limits.group_lanes},
            {"buffer_bytes", limits.buffer_bytes},
            {"bindings", limits.bindings},
            {"shared_bytes", limits.shared_bytes},
            {"f64", limits.f64},
            {"f16", limits.f16}}}};
}

/// A limit that a page may lower.
struct LoweredLimit {
  const char* name;
  int64_t Limits::* value;
};
constexpr LoweredLimit kLowered[] = {{"group_lanes", &Limits::group_lanes},
                                     {"binding_bytes", &Limits::binding_bytes},
                                     {"bindings", &Limits::bindings},
                                     {"buffer_bytes", &Limits::buffer_bytes},
                                     {"shared_bytes", &Limits::shared_bytes}};

void lower(Limits& limits, const Json& wanted) {
  for (const LoweredLimit& limit : kLowered)
    if (wanted.contains(limit.name)) limits.*limit.value = whole(wanted, limit.name, 1, limits.*limit.value);
  if (wanted.contains("groups")) limits.groups.fill(whole(wanted, "groups", 1, limits.groups[0]));
}

/// The first device of a list that works, and why those before it do not.
Json open(const Json& request) {
  const bool automatic = text(request, "names") == "auto";  // a software adapter does not count
  const std::string names = automatic ? "webgpu,cpu" : text(request, "names");
  const Json limits = request.value("limits", Json::object());
  DeviceOptions options;
  if (!limits.empty()) options.lower_limits = [&](Limits& all) { lower(all, limits); };
  Device device;
  const std::vector<RefusedDevice> others = open_first(names, [&](const std::string& name) {
    device = Device::open(name, options);
    if (automatic && device.info().software)
      throw UnsupportedError("a software adapter", "webgpu", "a hardware adapter, or webgpu by its name");
  });
  Json info = info_of(device), refused = Json::array();
  for (const auto& [name, reason] : others) refused.push_back({{"name", name}, {"reason", reason}});
  info["handle"] = objects().devices.add(device);
  info["refused"] = refused;
  return info;
}

Json allocate(const Json& request) {
  const Device& device = device_of(request);
  const Buffer buffer =
      device.allocate(bindings::storage_named(text(request, "type")), shape_of(request, "shape", 4));
  device.clear(buffer);
  return {{"handle", objects().buffers.add(buffer)}, {"bytes", buffer.bytes()}};
}

/// Memory that lockstep_allocate gave: of exactly the buffer's bytes.
void* host_memory(const Json& request, const Buffer& buffer) {
  const int64_t bytes = whole(request, "bytes", 0, INT64_MAX),
                address = whole(request, "address", 0, UINT32_MAX);
  if (bytes != buffer.bytes() || address > int64_t(__builtin_wasm_memory_size(0)) * 65536 - bytes ||
      (address == 0 && bytes > 0))
    throw InputError(std::to_string(bytes) + " bytes", "lockstep.js",
                     std::to_string(buffer.bytes()) + " bytes in the core's memory");
  return reinterpret_cast<void*>(uintptr_t(address));
}

Argument argument_of(const Json& value) {
  if (value.is_number_integer()) return objects().buffers.at(value);
  const Number number = number_of(value);
  switch (number.kind) {
    case Number::Kind::floating: return number.f64;
    case Number::Kind::whole: return number.i64;
    case Number::Kind::natural: return number.u64;
    default: return number.u64 != 0;
  }
}

Json launch(const Json& request) {
  std::vector<Argument> arguments;
  const Json& given = member(request, "arguments");
  if (!given.is_array()) throw InputError("arguments", "lockstep.js", "an array");
  for (const Json& value : given) arguments.push_back(argument_of(value));
  device_of(request).launch_with(objects().kernels.at(member(request, "kernel")),
                                 shape_of(request, "extent", 3), arguments, {}, std::source_location());
  return nullptr;
}

/// Into a buffer of one element: x, and y for dot.
Json reduce(const Json& request) {
  const std::string how = text(request, "how");
  const Device& device = device_of(request);
  const Buffer &x = buffer_of(request), &result = buffer_of(request, "result");
  if (how == "dot")
    primitives::dot(device, x, buffer_of(request, "other"), result);
  else if (how == "norm")
    primitives::norm(device, x, result);
  else if (how == "sum" || how == "min" || how == "max")
    primitives::reduce(device,
                       how == "sum"   ? primitives::Reduce::sum
                       : how == "min" ? primitives::Reduce::min
                                      : primitives::Reduce::max,
                       x, result);
  else
    throw InputError("reduction " + how, "lockstep.js", "sum, min, max, dot or norm");
  return nullptr;
}

Json counters(const Json& request) {
  const DeviceCounters c = device_of(request).counters();
  return {{"launches", c.launches},
          {"bytes_to_device", c.bytes_to_device},
          {"bytes_from_device", c.bytes_from_device},
          {"allocated_bytes", c.allocated_bytes},
          {"peak_bytes", c.peak_bytes},
          {"kernels_compiled", c.kernels_compiled}};
}

}  // namespace

void add_device_calls(Calls& calls) {
  calls["open"] = open;
  calls["close"] = [](const Json& r) { return objects().devices.remove(member(r, "device")), Json(); };
  calls["counters"] = counters;
  calls["allocate"] = allocate;
  calls["free"] = [](const Json& r) { return objects().buffers.remove(member(r, "buffer")), Json(); };
  calls["write"] = [](const Json& r) {
    const Buffer& buffer = buffer_of(r);
    const void* from = host_memory(r, buffer);
    return device_of(r).write(buffer, from, buffer.bytes()), Json();
  };
  calls["read"] = [](const Json& r) {
    const Buffer& buffer = buffer_of(r);
    void* to = host_memory(r, buffer);
    return device_of(r).read(buffer, to, buffer.bytes()), Json();
  };
  calls["copy"] = [](const Json& r) {
    return device_of(r).copy(buffer_of(r, "from"), buffer_of(r, "to")), Json();
  };
  calls["clear"] = [](const Json& r) { return device_of(r).clear(buffer_of(r)), Json(); };
  calls["launch"] = launch;
  calls["prepare"] = [](const Json& r) {
    return device_of(r).prepare(objects().kernels.at(member(r, "kernel"))), Json();
  };
  calls["synchronize"] = [](const Json& r) { return device_of(r).synchronize(), Json(); };
  calls["reduce"] = reduce;
  calls["objects"] = [](const Json&) {
    return Json{{"arrays", arrays().size()},
                {"devices", objects().devices.size()},
                {"buffers", objects().buffers.size()},
                {"kernels", objects().kernels.size()}};
  };
}

}  // namespace lockstep::web
