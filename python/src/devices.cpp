// Devices and buffers.
#include "bind.hpp"
#include "core/dynamic_library.hpp"
#include "cuda_number.hpp"
#include "ir/bindings.hpp"
#include "lockstep/check.hpp"

namespace lockstep::python {

OpenDevice::OpenDevice(ContextOptions options)
    : lines(std::make_shared<std::pair<std::mutex, std::vector<std::string>>>()) {
  options.on_fallback = [kept = lines](const std::string& line) {
    const std::lock_guard lock(kept->first);
    kept->second.push_back(line);
  };
  context = std::make_unique<Context>(std::move(options));
}

std::vector<std::string> OpenDevice::take_fallbacks() {
  const std::lock_guard lock(lines->first);
  return std::exchange(lines->second, {});
}

Storage storage_of(const std::string& text) { return bindings::storage_named(text); }
Type type_of(const std::string& text) { return bindings::type_named(text); }
Shape shape_of(const std::vector<int64_t>& sizes) {
  Shape shape;
  for (int64_t s : sizes) shape.push_back(s);
  return shape;
}
std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int a = 0; a < shape.rank(); ++a) sizes.push_back(shape[a]);
  return sizes;
}

int cuda_number(uint64_t address) {
  constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  using Tell = int(void* value, int attribute, uint64_t address);
  static const auto* const driver =
      new DynamicLibrary(LibrarySearch{{"libcuda.so.1", "libcuda.so"}, {}}.load());
  static Tell* const tell = *driver ? driver->function<Tell>("cuPointerGetAttribute") : nullptr;
  int number = 0;
  return tell && tell(&number, kDeviceOrdinal, address) == 0 ? number : 0;
}

namespace {

nb::dict info_of(const DeviceInfo& info) {
  const Limits& l = info.limits;
  return dict_of("name", info.name, "kind", std::string(name(info.kind)), "description", info.description,
                 "architecture", info.architecture, "software", info.software, "multiprocessors",
                 info.multiprocessors, "limits",
                 dict_of("groups", nb::make_tuple(l.groups[0], l.groups[1], l.groups[2]), "group_lanes",
                         l.group_lanes, "buffer_bytes", l.buffer_bytes, "binding_bytes", l.binding_bytes,
                         "bindings", l.bindings, "shared_bytes", l.shared_bytes, "f64", l.f64, "f16", l.f16));
}

nb::list list_devices() {
  nb::list result;
  for (const DeviceStatus& status : freely([] { return Device::list(); })) {
    nb::dict d = info_of(status.info);
    d["available"] = status.available;
    d["reason"] = status.reason;
    d["total_bytes"] = status.memory.total_bytes;
    d["free_bytes"] = status.memory.free_bytes;
    result.append(d);
  }
  return result;
}

std::vector<Argument> arguments_of(const nb::list& arguments) {
  std::vector<Argument> list;
  list.reserve(nb::len(arguments));
  for (nb::handle a : arguments) list.push_back(argument_of(a));
  return list;
}

void launch(const OpenDevice& open, const Kernel& kernel, const std::vector<int64_t>& extent,
            const nb::list& arguments) {
  const std::vector<Argument> list = arguments_of(arguments);
  const Shape shape = shape_of(extent);
  const nb::gil_scoped_release free;
  open.device().launch_with(kernel, shape, list, {}, std::source_location());
}

PerReplay per_replay_of(std::string name, nb::handle value) {
  return std::visit(
      [&](const auto& number) -> PerReplay {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>)
          return per_replay(std::move(name), number);
        else
          throw InputError("a value that is not a number", "lockstep.per_replay", "a number");
      },
      argument_of(value));
}

/// Records the launches of a function of Python.
Graph record(const OpenDevice& open, const nb::object& work) {
  const nb::gil_scoped_release free;
  return open.device().record([&] {
    const nb::gil_scoped_acquire lock;
    work();
  });
}

void replay(const OpenDevice& open, const Graph& graph, const nb::dict& numbers) {
  Arguments values;
  for (const auto& [name, value] : numbers) values.set(nb::cast<std::string>(name), argument_of(value));
  const nb::gil_scoped_release free;
  open.device().replay(graph, values);
}

Buffer wrap(const OpenDevice& open, const std::string& dtype, const std::vector<int64_t>& shape,
            uint64_t address, const std::vector<int64_t>& strides, nb::object owner,
            std::optional<uint64_t> stream) {
  Foreign foreign;
  foreign.address = address;
  foreign.owner = keep(std::move(owner));
  if (strides.size() > 4) throw InputError("more than 4 axes", "lockstep.asarray", "1 to 4 axes");
  std::copy(strides.begin(), strides.end(), foreign.strides.begin());
  foreign.stream = stream;
  const nb::gil_scoped_release free;
  return open.device().wrap(storage_of(dtype), shape_of(shape), foreign);
}

nb::dict counters_of(const OpenDevice& open) {
  const DeviceCounters c = open.device().counters();
  return dict_of("launches", c.launches, "bytes_to_device", c.bytes_to_device, "bytes_from_device",
                 c.bytes_from_device, "allocated_bytes", c.allocated_bytes, "peak_bytes", c.peak_bytes,
                 "kernels_compiled", c.kernels_compiled, "cache_hits", c.cache_hits);
}

nb::list stages_of(const OpenDevice& open) {
  nb::list all;
  for (const StageRecord& s : open.context->stages())
    all.append(dict_of("stage", s.stage, "device", s.device, "seconds", s.seconds, "bytes_to_device",
                       s.bytes_to_device, "bytes_from_device", s.bytes_from_device, "launches", s.launches,
                       "fallbacks", s.fallbacks));
  return all;
}

void bind_buffer(nb::module_& module) {
  nb::class_<Buffer>(module, "Buffer")
      .def_prop_ro("dtype", [](const Buffer& b) { return std::string(name(b.storage())); })
      .def_prop_ro("shape", [](const Buffer& b) { return sizes_of(b.shape()); })
      .def_prop_ro("strides",
                   [](const Buffer& b) {
                     return std::vector<int64_t>(b.strides().begin(), b.strides().begin() + b.shape().rank());
                   })
      .def_prop_ro("bytes", &Buffer::bytes)
      .def_prop_ro("contiguous", &Buffer::contiguous)
      .def_prop_ro("native", &Buffer::native)
      .def("reshape", [](const Buffer& b, const std::vector<int64_t>& s) { return b.reshape(shape_of(s)); });
}

/// Copies, clears and the order of streams: without Python's lock.
void bind_transfers(nb::class_<OpenDevice>& device) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  device
      .def(
          "write",
          [](const OpenDevice& d, const Buffer& to, uint64_t address, int64_t bytes) {
            d.device().write(to, reinterpret_cast<const void*>(uintptr_t(address)), bytes);
          },
          Free())
      .def(
          "read",
          [](const OpenDevice& d, const Buffer& from, uint64_t address, int64_t bytes) {
            d.device().read(from, reinterpret_cast<void*>(uintptr_t(address)), bytes);
          },
          Free())
      .def(
          "copy", [](const OpenDevice& d, const Buffer& a, const Buffer& b) { d.device().copy(a, b); },
          Free())
      .def(
          "clear", [](const OpenDevice& d, const Buffer& b) { d.device().clear(b); }, Free())
      .def(
          "synchronize", [](const OpenDevice& d) { d.device().synchronize(); }, Free())
      .def(
          "begin_after", [](const OpenDevice& d, uint64_t stream) { d.device().begin_after(stream); }, Free())
      .def("end_before", [](const OpenDevice& d, uint64_t stream) { d.device().end_before(stream); }, Free());
}

}  // namespace

Argument argument_of(nb::handle value) {
  if (nb::isinstance<Buffer>(value)) return nb::cast<Buffer>(value);
  if (nb::isinstance<PerReplay>(value)) return nb::cast<PerReplay>(value);
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) {
    int64_t small;
    if (nb::try_cast(value, small)) return small;
    return nb::cast<uint64_t>(value);
  }
  return nb::cast<double>(value);
}

void bind_devices(nb::module_& module) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  module.def("list_devices", &list_devices);
  module.def("set_fault", [](const std::string& text) { set_fault(text); });

  bind_buffer(module);
  nb::class_<Graph>(module, "Graph");
  nb::class_<PerReplay>(module, "PerReplay");
  module.def("per_replay", &per_replay_of);
  module.def("cuda_number", &cuda_number);
  module.def("check_launches", [](int64_t every) { check_launches(every); });
  module.def("checked_every", &checked_every);

  nb::class_<OpenDevice> opened(module, "Device");
  bind_transfers(opened);
  opened
      .def("__init__",
           [](OpenDevice* self, const std::string& device, const std::string& numerics, int threads,
              bool fallback) {
             if (numerics != "exact" && numerics != "fast")
               throw InputError("numerics " + numerics, "lockstep.Device", "exact or fast");
             ContextOptions options;
             options.device = device;
             options.numerics = numerics == "fast" ? Numerics::fast : Numerics::exact;
             options.threads = threads;
             options.fallback = fallback;
             const nb::gil_scoped_release free;
             new (self) OpenDevice(std::move(options));
           })
      .def_prop_ro("info", [](const OpenDevice& d) { return info_of(d.device().info()); })
      .def("memory",
           [](const OpenDevice& d) {
             const MemoryInfo m = d.device().memory();
             return std::pair(m.total_bytes, m.free_bytes);
           })
      .def("counters", &counters_of)
      .def("stages", &stages_of)
      .def("fallbacks", [](const OpenDevice& d) { return d.context->fallbacks(); })
      .def("take_fallbacks", &OpenDevice::take_fallbacks)
      .def("allocate",
           [](const OpenDevice& d, const std::string& dtype, const std::vector<int64_t>& shape) {
             return d.device().allocate(storage_of(dtype), shape_of(shape));
           })
      .def("wrap", &wrap, nb::arg("dtype"), nb::arg("shape"), nb::arg("address"), nb::arg("strides"),
           nb::arg("owner"), nb::arg("stream") = nb::none())
      .def("launch", &launch)
      .def("check_launches", [](const OpenDevice& d, int64_t every) { check_launches(d.device(), every); })
      .def("record", &record)
      .def("replay", &replay)
      .def("supports",
           [](const OpenDevice& d, const Kernel& k) {
             const Support s = d.device().supports(k);
             return std::pair(s.ok, s.reason);
           })
      .def("seconds",
           [](const OpenDevice& d, const Kernel& kernel, const std::vector<int64_t>& extent,
              const nb::list& arguments, int repeats) {
             const std::vector<Argument> list = arguments_of(arguments);
             const Shape shape = shape_of(extent);
             const nb::gil_scoped_release free;
             return d.device().seconds([&] {
               for (int k = 0; k < repeats; ++k)
                 d.device().launch_with(kernel, shape, list, {}, std::source_location());
             });
           })
      .def("copy_gbps", [](const OpenDevice& d) { return measure_copy_gbps(d.device()); }, Free());
}

}  // namespace lockstep::python
