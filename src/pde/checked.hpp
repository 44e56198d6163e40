// Checks of the data of an evaluation, and what all ways of evaluating share.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "lockstep/error.hpp"
#include "pde/bound.hpp"

namespace lockstep::pde {

struct Loss::State {
  std::shared_ptr<const Discretisation> d;
  std::mutex mutex;
  std::map<std::string, Kernel> kernels;

  const Kernel& kernel(const std::string& key, const std::function<Kernel()>& make) {
    std::lock_guard lock(mutex);
    const auto found = kernels.find(key);
    return found != kernels.end() ? found->second : kernels.emplace(key, make()).first->second;
  }
};

inline std::string form_key(const char* what, const KernelForm& form) {
  return fmt::format("{} {} {} {}", what, int(form.storage), form.mask, form.streaming);
}

/// Checks inputs against the plan and turns them into arrays of rank 4.
class Checked {
 public:
  Checked(const Discretisation& d, const Device& device, const Inputs& inputs)
      : d_(d), plan_(*d.plan), device_(device) {
    for (const auto& [name, levels] : inputs.fields) field_number(name);
    for (const auto& [name, value] : inputs.parameters) check_parameter(name, value);
    parameters_.assign(plan_.parameters.size(), 0.0);
    const double dt = d.mesh.dt;
    parameters_[kTimeFirst] = 0.5 / dt;
    parameters_[kTimeForward] = 1 / dt;
    parameters_[kTimeSecond] = 1 / (dt * dt);
    for (size_t k = kTimeParameters; k < parameters_.size(); ++k) {
      const auto found = inputs.parameters.find(plan_.parameters[k]);
      if (found == inputs.parameters.end())
        throw InputError(fmt::format("parameter {} missing", plan_.parameters[k]), "pde inputs",
                         "a number for each parameter");
      parameters_[k] = found->second;
    }
    for (size_t f = 0; f < plan_.fields.size(); ++f)
      for (int level = -1; level <= 1; ++level) {
        if (!plan_.fields[f].used[level + 1]) continue;
        const auto found = inputs.fields.find(plan_.fields[f].name);
        const Buffer given = found == inputs.fields.end() ? Buffer() : found->second[size_t(level + 1)];
        if (!given)
          throw InputError(fmt::format("field {} at level {:+} missing", plan_.fields[f].name, level),
                           "pde inputs", "an array");
        check(given, int(f), fmt::format("field {} at level {:+}", plan_.fields[f].name, level));
        arrays_[{int(f), level}] = given;
      }
    if (inputs.mask) {
      check_shape(inputs.mask, 1, "mask");
      form_.mask = true;
      mask_ = inputs.mask.reshape({cells(2), cells(1), cells(0)});
    }
    if (!std::isfinite(inputs.seed) || inputs.seed == 0)
      throw InputError(fmt::format("seed {}", inputs.seed), "pde inputs", "a finite number other than 0");
  }

  const KernelForm& form() const { return form_; }
  const std::vector<double>& parameters() const { return parameters_; }
  const Buffer& mask() const { return mask_; }
  Buffer given(const FieldLevel& f) const { return arrays_.at({f.field_index, f.level}); }
  Buffer volume(const FieldLevel& f) const { return as_volume(given(f), f.field_index); }
  Buffer as_volume(const Buffer& b, int field) const {
    return b.reshape({plan_.fields[size_t(field)].components, cells(2), cells(1), cells(0)});
  }
  int64_t cells(int axis) const { return d_.mesh.cells[size_t(axis)]; }
  int field_number(const std::string& name) const {
    for (size_t f = 0; f < plan_.fields.size(); ++f)
      if (plan_.fields[f].name == name) return int(f);
    std::string known;
    for (const FieldInfo& f : plan_.fields) known += (known.empty() ? "" : ", ") + f.name;
    throw InputError(fmt::format("unknown field {}", name), "pde inputs", known);
  }
  void check(const Buffer& b, int field, const std::string& what) {
    if (!have_storage_) {
      const Storage s = b.storage();
      if (s != Storage::f32 && s != Storage::f64 && s != Storage::f16 && s != Storage::bf16)
        throw InputError(fmt::format("{} of type {}", what, lockstep::name(s)), "pde inputs",
                         "f32, f64, f16 or bf16");
      form_.storage = s;
      have_storage_ = true;
    }
    check_shape(b, plan_.fields[size_t(field)].components, what);
  }

 private:
  void check_shape(const Buffer& b, int components, const std::string& what) const {
    if (b.storage() != form_.storage)
      throw InputError(fmt::format("{} of type {}", what, lockstep::name(b.storage())), "pde inputs",
                       fmt::format("{} as the other arrays", lockstep::name(form_.storage)));
    if (!b.contiguous())
      throw InputError(fmt::format("{} is not contiguous", what), "pde inputs", "a whole array");
    // (C, nz, ny, nx) with C and leading axes of one cell left out or not.
    std::vector<int64_t> expected;
    if (components > 1) expected.push_back(components);
    for (int a = d_.plan->dimensions - 1; a >= 0; --a) expected.push_back(cells(a));
    std::vector<int64_t> full;
    if (components > 1) full.push_back(components);
    for (int a = 2; a >= 0; --a) full.push_back(cells(a));
    std::vector<int64_t> with_one = full;
    if (components == 1) with_one.insert(with_one.begin(), 1);
    std::vector<int64_t> got;
    for (int a = 0; a < b.shape().rank(); ++a) got.push_back(b.shape()[a]);
    if (got == expected || got == full || got == with_one) return;
    std::string text;
    for (int64_t n : expected) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    throw InputError(fmt::format("{} of shape {}", what, to_string(b.shape())), "pde inputs",
                     fmt::format("({})", text));
  }
  void check_parameter(const std::string& name, double value) const {
    for (size_t k = kTimeParameters; k < plan_.parameters.size(); ++k)
      if (plan_.parameters[k] == name) {
        if (!std::isfinite(value))
          throw InputError(fmt::format("parameter {} is {}", name, value), "pde inputs", "a finite number");
        return;
      }
    throw InputError(fmt::format("unknown parameter {}", name), "pde inputs", "a parameter of the system");
  }

  const Discretisation& d_;
  const Plan& plan_;
  const Device& device_;
  KernelForm form_;
  bool have_storage_ = false;
  std::vector<double> parameters_;
  std::map<std::pair<int, int>, Buffer> arrays_;
  Buffer mask_;
};

/// The scales and the plan's parameters, as every kernel takes them.
inline void push_scalars(std::vector<Argument>& list, const Discretisation& d,
                         const std::vector<double>& parameters) {
  for (double v : d.scale_values) list.push_back(v);
  for (double v : parameters) list.push_back(v);
}

/// Fields that the way back to `outputs` reads.
std::vector<FieldLevel> adjoint_fields(const Plan& plan, const std::vector<FieldLevel>& outputs);

inline Buffer like(const Device& device, const Buffer& b) { return device.allocate(b.storage(), b.shape()); }

/// Planes of a slab whose cotangents and level-0 fields stay in the cache until the adjoint reads them.
int64_t choose_slab(const Discretisation& d, const Device& device, const KernelForm& form, int64_t asked);

}  // namespace lockstep::pde
