#include "loss_call.hpp"

#include "device/backend.hpp"

namespace lockstep::python {

Buffer wrap_ordered(const Device& device, Storage storage, const Shape& shape, uint64_t address) {
  Foreign foreign;
  foreign.address = address;
  foreign.stream = device::kOrderedByUser;
  return device.wrap(storage, shape, foreign);
}

Buffer LossCall::wrapped(Storage storage, const Shape& shape, uint64_t address) const {
  return wrap_ordered(device_, storage, shape, address);
}

pde::Inputs LossCall::inputs_at(const Addresses& at) const {
  pde::Inputs inputs;
  for (size_t k = 0; k < form_.slots.size(); ++k) {
    const Slot& slot = form_.slots[k];
    const size_t level = size_t(slot.level + 1);
    inputs.fields[slot.field][level] = wrapped(form_.storage, slot.shape, at.fields[k]);
    if (slot.gradient)
      inputs.gradients[slot.field][level] = wrapped(form_.storage, slot.shape, at.gradients[k]);
  }
  const auto& cells = loss_.mesh().cells;
  if (at.mask) inputs.mask = wrapped(form_.storage, {cells[2], cells[1], cells[0]}, at.mask);
  inputs.parameters = at.parameters;
  return inputs;
}

void LossCall::launch(const Addresses& at) {
  pde::Inputs inputs = inputs_at(at);
  uint64_t places = at.mask;
  for (const uint64_t place : at.fields) places |= place;
  for (const uint64_t place : at.gradients) places |= place;
  std::optional<pde::BoundLoss>& kept = bound_[places % 16 == 0];
  if (!kept) {
    inputs.seed = form_.seed;
    kept = loss_.bind(device_, inputs, form_.options);
  } else {
    kept = kept->rebind(inputs.fields, inputs.gradients, inputs.mask, inputs.parameters);
  }
  kept->run();
  kept->loss_into(wrapped(at.value_storage, {1}, at.value));
  if (!at.by_parameter) return;
  inputs.seed = 1;
  inputs.gradients.clear();
  *at.by_parameter = loss_.number_gradients(device_, inputs).parameters;
}

void LossCall::run(const Addresses& at) {
  if (at.fields.size() != form_.slots.size() || at.gradients.size() != form_.slots.size())
    throw InputError(std::to_string(at.fields.size()) + " arrays", "lockstep.pde, a call of a loss",
                     std::to_string(form_.slots.size()));
  const std::lock_guard lock(mutex_);
  if (at.stream) device_.begin_after(*at.stream);
  launch(at);
  if (at.stream) device_.end_before(*at.stream);
}

namespace {

/// A slot as Python gives it: field, level, shape, whether its gradient is requested.
using GivenSlot = std::tuple<std::string, int, std::vector<int64_t>, bool>;

void scale_gradients(const OpenDevice& open, const std::vector<std::pair<uint64_t, int64_t>>& arrays,
                     const std::string& storage, uint64_t seed, const std::string& seed_storage, double scale,
                     const std::optional<uint64_t>& stream) {
  const nb::gil_scoped_release free;
  const Device& device = open.device();
  std::vector<Buffer> wrapped;
  for (const auto& [address, elements] : arrays)
    wrapped.push_back(wrap_ordered(device, storage_of(storage), {elements}, address));
  if (stream) device.begin_after(*stream);
  pde::scale_gradients(device, wrapped, wrap_ordered(device, storage_of(seed_storage), {1}, seed), scale);
  if (stream) device.end_before(*stream);
}

}  // namespace

void bind_loss_call(nb::module_& module) {
  nb::class_<LossCall>(module, "LossCall")
      .def("__init__",
           [](LossCall* self, const pde::Loss& loss, const OpenDevice& open, const std::string& storage,
              const std::vector<GivenSlot>& slots, double seed, const std::string& gradients,
              const std::string& path, const std::vector<std::string>& wanted) {
             LossCall::Form form;
             form.storage = storage_of(storage);
             for (const auto& [field, level, shape, gradient] : slots)
               form.slots.push_back({field, level, shape_of(shape), gradient});
             form.seed = seed;
             form.options = loss_options(gradients, path, wanted);
             new (self) LossCall(loss, open.device(), std::move(form));
           })
      .def(
          "run",
          [](LossCall& call, const std::vector<uint64_t>& fields, const std::vector<uint64_t>& gradients,
             uint64_t mask, uint64_t value, bool wide, const std::map<std::string, double>& parameters,
             bool by_parameter, const std::optional<uint64_t>& stream) {
            std::map<std::string, double> found;
            const nb::gil_scoped_release free;
            call.run({fields, gradients, mask, value, wide ? Storage::f64 : Storage::f32, parameters,
                      by_parameter ? &found : nullptr, stream});
            return found;
          },
          nb::arg("fields"), nb::arg("gradients"), nb::arg("mask"), nb::arg("value"), nb::arg("wide"),
          nb::arg("parameters"), nb::arg("by_parameter"), nb::arg("stream").none());
  module.def("scale_gradients", &scale_gradients, nb::arg("device"), nb::arg("arrays"), nb::arg("storage"),
             nb::arg("seed"), nb::arg("seed_storage"), nb::arg("scale"), nb::arg("stream").none());
}

}  // namespace lockstep::python
