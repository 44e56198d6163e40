// Losses of pde as custom calls of XLA, by the C structures of its foreign function interface (version 0.x,
// https://openxla.org/xla/custom_call): compiled JAX programs call the engine without Python, on their own memory.
#include <algorithm>

#include "keywords.hpp"

namespace lockstep::python {
namespace {

// ── the structures, in the order and sizes of XLA's c_api.h ──

struct XlaExtension {
  size_t size;
  int kind;
  XlaExtension* next;
};
struct XlaVersion {
  size_t size;
  XlaExtension* extensions;
  int major, minor;
};
struct XlaMetadata {
  size_t size;
  XlaVersion version;
  uint32_t traits;
};
struct XlaMetadataExtension {
  XlaExtension base;
  XlaMetadata* metadata;
};
constexpr int kNewestMinor = 5;  // what is used here is the same from 0.1 to 0.5
constexpr int kMetadataExtension = 1, kExecute = 3, kInvalidArgument = 3, kScalarAttribute = 3;

struct XlaError;
struct XlaErrorArguments {
  size_t size;
  XlaExtension* extensions;
  const char* message;
  int code;
};
struct XlaStreamArguments {
  size_t size;
  XlaExtension* extensions;
  void* context;
  void* stream;
};
struct XlaApi {
  size_t size;
  XlaExtension* extensions;
  XlaVersion version;
  const void* internal;
  XlaError* (*create_error)(XlaErrorArguments*);
  void* error_details;
  void* destroy_error;
  void* register_handler;
  XlaError* (*stream)(XlaStreamArguments*);
};
struct XlaBuffer {
  size_t size;
  XlaExtension* extensions;
  int type;
  void* data;
  int64_t rank;
  int64_t* dims;
  int64_t elements() const {
    int64_t count = 1;
    for (int64_t axis = 0; axis < rank; ++axis) count *= dims[axis];
    return count;
  }
};
struct XlaText {
  const char* data;
  size_t size;
};
struct XlaScalar {
  int type;
  void* value;
};
struct XlaBuffers {
  size_t size;
  XlaExtension* extensions;
  int64_t count;
  int* kinds;
  void** items;
  const XlaBuffer& at(int64_t k) const { return *static_cast<const XlaBuffer*>(items[k]); }
};
struct XlaAttributes {
  size_t size;
  XlaExtension* extensions;
  int64_t count;
  int* kinds;
  XlaText** names;
  void** items;
};
struct XlaCall {
  size_t size;
  XlaExtension* extensions;
  const XlaApi* api;
  void* context;
  int stage;
  XlaBuffers arguments, results;
  XlaAttributes attributes;
};

Storage storage_of_xla(int type) {
  switch (type) {
    case 10: return Storage::f16;
    case 11: return Storage::f32;
    case 12: return Storage::f64;
    case 16: return Storage::bf16;
    default:
      throw InputError("elements of XLA's type " + std::to_string(type), "lockstep.jax",
                       "f32, f64, f16 or bf16");
  }
}

// ── losses by their numbers ──

struct XlaLoss {
  pde::Loss loss;
  std::vector<std::pair<std::string, int>> fields;  // with their components
  std::string present;                              // a digit for each field and level: 1 where it is given
  std::map<std::string, double> parameters;
  std::optional<Array> mask;
};
std::mutex losses_mutex;
std::vector<std::shared_ptr<const XlaLoss>>& losses() {
  static auto* const all = new std::vector<std::shared_ptr<const XlaLoss>>;
  return *all;
}

int64_t number_of(const XlaCall& call) {
  for (int64_t k = 0; k < call.attributes.count; ++k) {
    const XlaText& name = *call.attributes.names[k];
    if (std::string_view(name.data, name.size) != "number" || call.attributes.kinds[k] != kScalarAttribute)
      continue;
    return *static_cast<const int64_t*>(static_cast<const XlaScalar*>(call.attributes.items[k])->value);
  }
  throw InputError("a call without its number", "lockstep.jax", "the attribute number, i64");
}

Buffer wrapped(const Device& device, Storage storage, const Shape& shape, const XlaBuffer& buffer,
               int64_t first, std::optional<uint64_t> stream) {
  Foreign foreign;
  foreign.address = uint64_t(uintptr_t(buffer.data)) + uint64_t(first * size_of(storage));
  foreign.stream = stream;
  return device.wrap(storage, shape, foreign);
}

/// One grid of a batch: fields, levels and gradients at member `member` of the call's buffers.
void evaluate_member(const XlaCall& call, const XlaLoss& target, const Device& device, int64_t member,
                     const Buffer& mask, std::optional<uint64_t> stream) {
  const auto& cells = target.loss.mesh().cells;
  const bool gradients = call.results.count > 1;
  pde::Inputs inputs;
  inputs.parameters = target.parameters;
  inputs.mask = mask;
  struct Given {
    std::string field;
    int level;
    Shape shape;
    Storage storage;
  };
  std::vector<Given> given;
  for (size_t slot = 0; slot < target.present.size(); ++slot) {
    if (target.present[slot] != '1') continue;
    const auto& [name, components] = target.fields[slot / 3];
    const Shape shape = components == 1 ? Shape{cells[2], cells[1], cells[0]}
                                        : Shape{components, cells[2], cells[1], cells[0]};
    const XlaBuffer& from = call.arguments.at(int64_t(given.size()));
    const Storage storage = storage_of_xla(from.type);
    inputs.fields[name][slot % 3] = wrapped(device, storage, shape, from, member * shape.elements(), stream);
    given.push_back({name, int(slot % 3) - 1, shape, storage});
  }
  pde::LossOptions options;
  options.gradients = gradients ? pde::Gradients::all : pde::Gradients::none;
  const pde::BoundLoss bound = target.loss.bind(device, inputs, options);
  bound.run();
  for (size_t k = 0; gradients && k < given.size(); ++k) {
    const Given& g = given[k];
    const Buffer to = wrapped(device, g.storage, g.shape, call.results.at(int64_t(k) + 1),
                              member * g.shape.elements(), stream);
    const Buffer from = bound.gradient(g.field, g.level);
    if (from)
      device.copy(from, to);
    else
      device.clear(to);
  }
  const XlaBuffer& value = call.results.at(0);
  const double loss = bound.loss();
  const Storage storage = storage_of_xla(value.type);
  const Buffer to = wrapped(device, storage, {1}, value, member, stream);
  const float narrow = float(loss);
  if (storage == Storage::f64)
    device.write(to, &loss, sizeof loss);
  else
    device.write(to, &narrow, sizeof narrow);
}

void evaluate_call(const XlaCall& call, const Device& device, std::optional<uint64_t> stream) {
  std::shared_ptr<const XlaLoss> target;
  {
    const std::lock_guard lock(losses_mutex);
    target = losses().at(size_t(number_of(call)));
  }
  const auto wanted = std::count(target->present.begin(), target->present.end(), '1');
  if (call.arguments.count != wanted || (call.results.count != 1 && call.results.count != wanted + 1))
    throw InputError(std::to_string(call.arguments.count) + " arrays", "lockstep.jax",
                     std::to_string(wanted));
  const int64_t members = call.results.at(0).elements();
  Buffer mask;
  if (target->mask) mask = device.upload(*target->mask);
  for (int64_t member = 0; member < members; ++member)
    evaluate_member(call, *target, device, member, mask, stream);
  if (stream)
    device.end_before(*stream);
  else
    device.synchronize();
}

/// Answers the question for the version, and turns exceptions into errors of XLA.
template <class F>
XlaError* handled(XlaCall* call, F work) {
  if (call->extensions && call->extensions->kind == kMetadataExtension) {
    XlaMetadata& metadata = *reinterpret_cast<XlaMetadataExtension*>(call->extensions)->metadata;
    metadata.version.major = 0;
    metadata.version.minor = call->api ? std::min(call->api->version.minor, kNewestMinor) : kNewestMinor;
    metadata.traits = 0;
    return nullptr;
  }
  if (call->stage != kExecute) return nullptr;
  std::string what;
  try {
    work();
    return nullptr;
  } catch (const std::exception& e) { what = e.what(); }
  XlaErrorArguments error{sizeof(XlaErrorArguments), nullptr, what.c_str(), kInvalidArgument};
  return call->api->create_error(&error);
}

XlaError* on_cpu(XlaCall* call) {
  return handled(call, [&] {
    static const auto* const device = new Device(Device::open("cpu"));
    evaluate_call(*call, *device, {});
  });
}
XlaError* on_cuda(XlaCall* call) {
  return handled(call, [&] {
    static const auto* const device = new Device(Device::open("cuda:0"));
    XlaStreamArguments stream{sizeof(XlaStreamArguments), nullptr, call->context, nullptr};
    if (call->api->stream(&stream))
      throw InputError("a call without a stream", "lockstep.jax", "XLA's stream");
    evaluate_call(*call, *device, uint64_t(uintptr_t(stream.stream)));
  });
}

}  // namespace

void bind_xla(nb::module_& module) {
  module.def("xla_target", [](const std::string& platform) {
    return nb::capsule(reinterpret_cast<void*>(platform == "cpu" ? &on_cpu : &on_cuda));
  });
  module.def(
      "xla_loss",
      [](const pde::Loss& loss, const std::vector<std::pair<std::string, int>>& fields,
         const std::string& present, const std::map<std::string, double>& parameters,
         const nb::object& mask) {
        auto target = std::make_shared<XlaLoss>(XlaLoss{loss, fields, present, parameters, {}});
        if (!mask.is_none()) target->mask = array_of(mask, "lockstep.jax, argument mask").copy();
        const std::lock_guard lock(losses_mutex);
        losses().push_back(std::move(target));
        return int64_t(losses().size()) - 1;
      },
      nb::arg("loss"), nb::arg("fields"), nb::arg("present"), nb::arg("parameters"), nb::arg("mask").none());
}

}  // namespace lockstep::python
