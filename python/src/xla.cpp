// Losses of pde as custom calls of XLA, by the C structures of its foreign function interface (version 0.x,
// https://openxla.org/xla/custom_call): compiled JAX programs call the engine without Python, on their own memory.
#include <algorithm>

#include "applications/loss_call.hpp"
#include "arrays.hpp"
#include "cuda_number.hpp"

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
  XlaLoss(pde::Loss l, std::vector<std::pair<std::string, int>> f, std::string given, std::string mentioned,
          std::map<std::string, double> p, std::vector<std::string> n)
      : loss(std::move(l)),
        fields(std::move(f)),
        present(std::move(given)),
        used(std::move(mentioned)),
        parameters(std::move(p)),
        names(std::move(n)) {}

  pde::Loss loss;
  std::vector<std::pair<std::string, int>> fields;  // with their components
  std::string present, used;                        // a digit for each field and level: 1 where it is
  std::map<std::string, double> parameters;         // those that stay
  std::vector<std::string> names;                   // of those that come with each call, as its last array
  std::optional<Array> mask;

  /// The loss on a device for arrays of a storage, with or without gradients, and the mask there.
  struct Ready {
    std::unique_ptr<LossCall> call;
    Buffer mask;
  };
  const Ready& ready(const Device& device, Storage storage, bool gradients) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<std::string, Storage, bool>, Ready> ready_;
};

const XlaLoss::Ready& XlaLoss::ready(const Device& device, Storage storage, bool gradients) const {
  const std::lock_guard lock(mutex_);
  Ready& found = ready_[{device.info().name, storage, gradients}];
  if (found.call) return found;
  const auto& cells = loss.mesh().cells;
  LossCall::Form form;
  form.storage = storage;
  form.options.gradients = gradients ? pde::Gradients::all : pde::Gradients::none;
  for (size_t slot = 0; slot < present.size(); ++slot) {
    if (present[slot] != '1') continue;
    const auto& [name, components] = fields[slot / 3];
    form.slots.push_back({name, int(slot % 3) - 1,
                          components == 1 ? Shape{cells[2], cells[1], cells[0]}
                                          : Shape{components, cells[2], cells[1], cells[0]},
                          gradients && used[slot] == '1'});
  }
  if (mask) found.mask = device.upload(*mask);
  found.call = std::make_unique<LossCall>(loss, device, std::move(form));
  return found;
}

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

/// One grid of a batch: fields, levels and gradients at member `member` of the call's buffers.
void evaluate_member(const XlaCall& call, const XlaLoss& target, const Device& device, int64_t member,
                     std::optional<uint64_t> stream) {
  const bool gradients = call.results.count > 1;
  const Storage storage = storage_of_xla(call.arguments.at(0).type);
  const XlaLoss::Ready& ready = target.ready(device, storage, gradients);
  const auto& slots = ready.call->form().slots;
  const auto at = [&](const XlaBuffer& buffer, int64_t elements, Storage type) {
    return uint64_t(uintptr_t(buffer.data)) + uint64_t(member * elements * size_of(type));
  };
  LossCall::Addresses to;
  for (size_t k = 0; k < slots.size(); ++k) {
    const int64_t elements = slots[k].shape.elements();
    to.fields.push_back(at(call.arguments.at(int64_t(k)), elements, storage));
    to.gradients.push_back(0);
    if (!gradients) continue;
    const uint64_t gradient = at(call.results.at(int64_t(k) + 1), elements, storage);
    if (slots[k].gradient)
      to.gradients.back() = gradient;
    else
      device.clear(wrap_ordered(device, storage, {elements}, gradient));
  }
  const XlaBuffer& value = call.results.at(0);
  to.value_storage = storage_of_xla(value.type);
  to.value = at(value, 1, to.value_storage);
  if (ready.mask) to.mask = ready.mask.native();
  to.stream = stream;
  to.parameters = target.parameters;
  const int64_t count = int64_t(target.names.size());
  if (count == 0) return ready.call->run(to);
  const XlaBuffer& numbers = call.arguments.at(int64_t(slots.size()));
  const Storage number_storage = storage_of_xla(numbers.type);
  const Buffer given = wrap_ordered(device, number_storage, {count}, at(numbers, count, number_storage));
  const Array wide = device.download(given).to(Storage::f64);
  for (size_t k = 0; k < target.names.size(); ++k) to.parameters[target.names[k]] = wide.as<double>()[k];
  std::map<std::string, double> found;
  if (gradients) to.by_parameter = &found;
  ready.call->run(to);
  if (!gradients) return;
  std::vector<double> derivatives;
  for (const std::string& name : target.names) derivatives.push_back(found.at(name));
  const XlaBuffer& out = call.results.at(int64_t(slots.size()) + 1);
  const Array narrow = Array::of(std::move(derivatives), Sizes{count}).to(number_storage);
  device.write(wrap_ordered(device, number_storage, {count}, at(out, count, number_storage)),
               narrow.raw().data(), int64_t(narrow.raw().size()));
}

void evaluate_call(const XlaCall& call, const Device& device, std::optional<uint64_t> stream) {
  std::shared_ptr<const XlaLoss> target;
  {
    const std::lock_guard lock(losses_mutex);
    target = losses().at(size_t(number_of(call)));
  }
  if (!target)
    throw InputError("a call of a loss that is gone", "lockstep.jax",
                     "a lockstep.pde.Loss that lives as long as the programs that call it");
  const auto wanted =
      std::count(target->present.begin(), target->present.end(), '1') + (target->names.empty() ? 0 : 1);
  if (call.arguments.count != wanted || (call.results.count != 1 && call.results.count != wanted + 1))
    throw InputError(std::to_string(call.arguments.count) + " arrays", "lockstep.jax",
                     std::to_string(wanted));
  const int64_t members = call.results.at(0).elements();
  if (stream) device.begin_after(*stream);
  for (int64_t member = 0; member < members; ++member) evaluate_member(call, *target, device, member, stream);
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
/// The device whose memory the call's result is, opened once.
const Device& cuda_device_of(const XlaCall& call) {
  static std::mutex mutex;
  static auto* const open = new std::map<int, Device>;
  const int number = cuda_number(uint64_t(uintptr_t(call.results.at(0).data)));
  const std::lock_guard lock(mutex);
  const auto found = open->find(number);
  if (found != open->end()) return found->second;
  return open->emplace(number, Device::open("cuda:" + std::to_string(number))).first->second;
}
XlaError* on_cuda(XlaCall* call) {
  return handled(call, [&] {
    const Device& device = cuda_device_of(*call);
    XlaStreamArguments stream{sizeof(XlaStreamArguments), nullptr, call->context, nullptr};
    if (call->api->stream(&stream))
      throw InputError("a call without a stream", "lockstep.jax", "XLA's stream");
    evaluate_call(*call, device, uint64_t(uintptr_t(stream.stream)));
  });
}

}  // namespace

void bind_xla(nb::module_& module) {
  module.def("xla_forget", [](int64_t number) {
    std::shared_ptr<const XlaLoss> gone;  // destroyed after the lock is free
    const std::lock_guard lock(losses_mutex);
    gone.swap(losses().at(size_t(number)));
  });
  module.def("xla_target", [](const std::string& platform) {
    return nb::capsule(reinterpret_cast<void*>(platform == "cpu" ? &on_cpu : &on_cuda));
  });
  module.def(
      "xla_loss",
      [](const pde::Loss& loss, const std::vector<std::pair<std::string, int>>& fields,
         const std::string& present, const std::string& used, const std::map<std::string, double>& parameters,
         const std::vector<std::string>& names, const nb::object& mask) {
        auto target = std::make_shared<XlaLoss>(loss, fields, present, used, parameters, names);
        if (!mask.is_none()) target->mask = array_of(mask, "lockstep.jax, argument mask").copy();
        const std::lock_guard lock(losses_mutex);
        losses().push_back(std::move(target));
        return int64_t(losses().size()) - 1;
      },
      nb::arg("loss"), nb::arg("fields"), nb::arg("present"), nb::arg("used"), nb::arg("parameters"),
      nb::arg("names"), nb::arg("mask").none());
}

}  // namespace lockstep::python
