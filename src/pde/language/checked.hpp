// Checks of the data of an evaluation, and what all ways of evaluating share.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "core/memo.hpp"
#include "lockstep/error.hpp"
#include "pde/divided/part.hpp"
#include "pde/kernels/bound.hpp"

namespace lockstep::pde {

struct Loss::State {
  std::shared_ptr<const Discretisation> d;
  Memo<std::string, Kernel> kernels;
  Memo<std::string, std::shared_ptr<const Discretisation>> parts;  // of trajectories
  Memo<std::tuple<>, std::shared_ptr<State>>
      of_second_order;                   // the derivative of this one's way back, when requested
  std::shared_ptr<const GridPart> part;  // the grid is a part of another one

  /// The grid that the loss is a mean over, which also decides about paths and tiles.
  const Discretisation& whole() const { return part ? *part->whole : *d; }
  /// The planes whose loss and gradients are computed.
  int64_t first_plane() const { return part ? part->first : 0; }
  int64_t end_plane() const { return part ? part->first + part->planes : d->mesh.cells[2]; }
};

inline std::string form_key(const char* what, const KernelForm& form) {
  return fmt::format("{} {} {} {} {} {} {} {}", what, int(form.storage), form.mask, form.streaming, form.rows,
                     form.batch, form.whole, form.part);
}

inline Buffer like(const Device& device, const Buffer& b) { return device.allocate(b.storage(), b.shape()); }

/// Whether an array begins at a multiple of so many bytes; memory of others may begin anywhere.
inline bool aligned(const Buffer& b, int64_t bytes) {
  const uint64_t place = b.native() ? b.native() : uint64_t(b.offset() * size_of(b.storage()));
  return place % uint64_t(bytes) == 0;
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
    check_profile_names(inputs.profiles);
    if (inputs.members < 1 || inputs.members > (int64_t(1) << 30))
      throw InputError(fmt::format("{} members", inputs.members), "pde inputs", "1 or more");
    members_ = inputs.members;
    form_.batch = members_ > 1;
    form_.rows = inputs.rows[0] || inputs.rows[1] || inputs.rows[2];
    if (form_.rows) take_rows(inputs);
    for (size_t f = 0; f < plan_.fields.size() && !form_.rows; ++f)
      for (int level = -1; level <= 1; ++level) {
        if (!plan_.fields[f].used[level + 1]) continue;
        const auto found = inputs.fields.find(plan_.fields[f].name);
        const Buffer given = found == inputs.fields.end() ? Buffer() : found->second[size_t(level + 1)];
        check(given, int(f), fmt::format("field {} at level {:+}", plan_.fields[f].name, level));
        arrays_[{int(f), level}] = given;
      }
    for (size_t k = 0; k < plan_.profiles.size(); ++k)
      profiles_.push_back(checked_profile(inputs.profiles.at(plan_.profiles[k]), int(k)));
    if (inputs.mask) {
      check_shape(inputs.mask, 1, "mask");
      form_.mask = true;
      mask_ = inputs.mask.reshape({members_ * cells(2), cells(1), cells(0)});
    }
    take_gradients(inputs.gradients);
    if (!std::isfinite(inputs.seed) || inputs.seed == 0)
      throw InputError(fmt::format("seed {}", inputs.seed), "pde inputs", "a finite number other than 0");
  }

  const KernelForm& form() const { return form_; }
  const std::vector<double>& parameters() const { return parameters_; }
  const std::vector<Buffer>& profiles() const { return profiles_; }
  const Buffer& mask() const { return mask_; }
  int64_t members() const { return members_; }
  Buffer given(const FieldLevel& f) const { return arrays_.at({form_.rows ? -1 : f.field_index, f.level}); }
  Buffer volume(const FieldLevel& f) const { return as_volume(given(f), f.field_index); }
  /// The destination of a gradient: the caller's array or a new one.
  Buffer gradient(const FieldLevel& f) const {
    const auto found = gradients_.find({form_.rows ? -1 : f.field_index, f.level});
    return found == gradients_.end() ? like(device_, given(f)) : found->second;
  }
  Buffer as_volume(const Buffer& b, int field) const {
    if (form_.rows) return b.reshape({members_ * cells(2), cells(1), cells(0), FieldArrays::width(plan_)});
    return b.reshape({members_ * plan_.fields[size_t(field)].components, cells(2), cells(1), cells(0)});
  }
  /// All fields that were given, and the mask.
  void set_fields(Arguments& a) const {
    for (const auto& [key, buffer] : arrays_)
      a.set(array_name(kField, plan_, {key.first, key.second}), as_volume(buffer, key.first));
    if (mask_) a.set("mask", mask_);
    set_profiles(a, profiles_);
  }
  static void set_profiles(Arguments& a, const std::vector<Buffer>& profiles) {
    for (size_t k = 0; k < profiles.size(); ++k) a.set(fmt::format("profile{}", k), profiles[k]);
  }
  /// A profile as the kernels read it, of rank 2.
  Buffer checked_profile(const Buffer& b, int number) const {
    const std::string what = fmt::format("profile {}", plan_.profiles[size_t(number)]);
    require(b, what);
    const int axis = std::max(d_.profile_axes[size_t(number)], 0);
    const int64_t outer = cells(axis == 2 ? 1 : 2), inner = cells(axis == 0 ? 1 : 0);
    const Shape& s = b.shape();
    const bool fits =
        s.rank() >= 1 && s.rank() <= 2 && s[s.rank() - 1] == inner && b.elements() == outer * inner;
    if (b.storage() != form_.scratch() || !b.contiguous() || !fits)
      throw InputError(fmt::format("{} {} of shape {}", lockstep::name(b.storage()), what, to_string(s)),
                       "pde inputs",
                       fmt::format("{} of shape ({}, {})", lockstep::name(form_.scratch()), outer, inner));
    return b.reshape({outer, inner});
  }
  /// The distinct arrays of a list: one for each entry, or for rows one for each level.
  std::vector<FieldLevel> arrays(const std::vector<FieldLevel>& list) const {
    if (!form_.rows) return list;
    std::vector<FieldLevel> all;
    for (int level : FieldArrays::levels(list)) all.push_back({-1, level});
    return all;
  }
  int64_t cells(int axis) const { return d_.mesh.cells[size_t(axis)]; }
  int field_number(const std::string& name) const {
    for (size_t f = 0; f < plan_.fields.size(); ++f)
      if (plan_.fields[f].name == name) return int(f);
    std::string known;
    for (const FieldInfo& f : plan_.fields) known += (known.empty() ? "" : ", ") + f.name;
    throw InputError(fmt::format("unknown field {}", name), "pde inputs", known);
  }
  size_t parameter_number(const std::string& name) const {
    for (size_t k = kTimeParameters; k < plan_.parameters.size(); ++k)
      if (plan_.parameters[k] == name) return k;
    throw InputError(fmt::format("unknown parameter {}", name), "pde inputs", "a parameter of the system");
  }
  size_t profile_number(const std::string& name) const {
    const auto found = std::find(plan_.profiles.begin(), plan_.profiles.end(), name);
    if (found == plan_.profiles.end())
      throw InputError(fmt::format("unknown profile {}", name), "pde inputs", "a profile of the system");
    return size_t(found - plan_.profiles.begin());
  }
  void check(const Buffer& b, int field, const std::string& what) {
    require(b, what);
    take_storage(b, what);
    check_shape(b, plan_.fields[size_t(field)].components, what);
  }
  void check_rows(const Buffer& b, const std::string& what) {
    require(b, what);
    take_storage(b, what);
    const int64_t width = FieldArrays::width(plan_), cells = members_ * d_.mesh.count();
    const int rank = b.shape().rank();
    const bool fits = rank >= 1 && b.shape()[rank - 1] == width && b.elements() == cells * width &&
                      (rank != 4 || (b.shape()[2] == d_.mesh.cells[0] && b.shape()[1] == d_.mesh.cells[1]));
    if (!fits)
      throw InputError(fmt::format("{} of shape {}", what, to_string(b.shape())), "pde inputs",
                       fmt::format("({}, {}) or (nz, ny, nx, {})", cells, width, width));
  }

 private:
  static void require(const Buffer& b, const std::string& what) {
    if (!b) throw InputError(what + " missing", "pde inputs", "an array");
  }
  void take_storage(const Buffer& b, const std::string& what) {
    if (!have_storage_) {
      const Storage s = b.storage();
      if (s != Storage::f32 && s != Storage::f64 && s != Storage::f16 && s != Storage::bf16)
        throw InputError(fmt::format("{} of type {}", what, lockstep::name(s)), "pde inputs",
                         "f32, f64, f16 or bf16");
      form_.storage = s;
      have_storage_ = true;
    }
    if (b.storage() != form_.storage)
      throw InputError(fmt::format("{} of type {}", what, lockstep::name(b.storage())), "pde inputs",
                       fmt::format("{} as the other arrays", lockstep::name(form_.storage)));
    if (!b.contiguous())
      throw InputError(fmt::format("{} is not contiguous", what), "pde inputs", "a contiguous array");
  }
  void take_rows(const Inputs& inputs) {
    if (!inputs.fields.empty()) throw InputError("rows and fields", "pde inputs", "one or the other");
    for (int level = -1; level <= 1; ++level) {
      bool used = false;
      for (const FieldInfo& f : plan_.fields) used |= f.used[level + 1];
      if (!used) continue;
      const Buffer& b = inputs.rows[size_t(level + 1)];
      check_rows(b, fmt::format("rows at level {:+}", level));
      arrays_[{-1, level}] = b;
    }
  }
  void take_gradients(const FieldBuffers& all) {
    for (const auto& [name, levels] : all) {
      if (form_.rows != name.empty())
        throw InputError(fmt::format("gradients of field '{}'", name), "pde inputs",
                         form_.rows ? "rows, under the empty name" : "names of fields");
      const int field = form_.rows ? -1 : field_number(name);
      for (int level = -1; level <= 1; ++level) {
        const Buffer& b = levels[size_t(level + 1)];
        if (!b) continue;
        const std::string what = fmt::format("gradient of '{}' at level {:+}", name, level);
        if (form_.rows)
          check_rows(b, what);
        else
          check(b, field, what);
        gradients_[{field, level}] = b;
      }
    }
  }
  void check_shape(const Buffer& b, int components, const std::string& what) const {
    if (b.storage() != form_.storage)
      throw InputError(fmt::format("{} of type {}", what, lockstep::name(b.storage())), "pde inputs",
                       fmt::format("{} as the other arrays", lockstep::name(form_.storage)));
    if (!b.contiguous())
      throw InputError(fmt::format("{} is not contiguous", what), "pde inputs", "a contiguous array");
    // (members * C, nz, ny, nx) with the first and axes of one cell left out or not.
    const int64_t leading = members_ * components;
    std::vector<int64_t> expected;
    if (leading > 1) expected.push_back(leading);
    for (int a = d_.plan->dimensions - 1; a >= 0; --a) expected.push_back(cells(a));
    std::vector<int64_t> full;
    if (leading > 1) full.push_back(leading);
    for (int a = 2; a >= 0; --a) full.push_back(cells(a));
    std::vector<int64_t> with_one = full;
    if (leading == 1) with_one.insert(with_one.begin(), 1);
    std::vector<int64_t> got;
    for (int a = 0; a < b.shape().rank(); ++a) got.push_back(b.shape()[a]);
    if (got == expected || got == full || got == with_one) return;
    std::string text;
    for (int64_t n : expected) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    throw InputError(fmt::format("{} of shape {}", what, to_string(b.shape())), "pde inputs",
                     fmt::format("({})", text));
  }
  void check_parameter(const std::string& name, double value) const {
    parameter_number(name);
    if (!std::isfinite(value))
      throw InputError(fmt::format("parameter {} is {}", name, value), "pde inputs", "a finite number");
  }

  void check_profile_names(const std::map<std::string, Buffer>& given) const {
    for (const auto& [name, buffer] : given) profile_number(name);
    for (const std::string& name : plan_.profiles)
      if (!given.contains(name))
        throw InputError(fmt::format("profile {} missing", name), "pde inputs", "an array for each profile");
  }

  const Discretisation& d_;
  const Plan& plan_;
  const Device& device_;
  KernelForm form_;
  bool have_storage_ = false;
  int64_t members_ = 1;
  std::vector<double> parameters_;
  std::map<std::pair<int, int>, Buffer> arrays_, gradients_;
  std::vector<Buffer> profiles_;
  Buffer mask_;
};

/// Shape of the residuals of all members.
inline Shape residual_shape(const Discretisation& d, const Checked& checked) {
  return {int64_t(d.plan->residuals.size()), checked.members() * d.mesh.cells[2], d.mesh.cells[1],
          d.mesh.cells[0]};
}
inline void check_cotangents(const Discretisation& d, const Checked& checked, const Buffer& cotangents) {
  const Shape shape = residual_shape(d, checked);
  const Storage storage = checked.form().scratch();
  if (!(cotangents.shape() == shape) || cotangents.storage() != storage)
    throw InputError(fmt::format("cotangents {} of shape {}", lockstep::name(cotangents.storage()),
                                 to_string(cotangents.shape())),
                     "pde vjp", fmt::format("{} of shape {}", lockstep::name(storage), to_string(shape)));
}

/// The numbers of a discretised plan: scale0 …, parameter0 … and seed0 …, the factors 2 w seed / N of the
/// residuals' cotangents, where any are given.
inline void set_numbers(Arguments& a, const Discretisation& d, const std::vector<double>& parameters,
                        const std::vector<double>& seeds = {}) {
  const auto set = [&](const char* name, const std::vector<double>& values) {
    for (size_t k = 0; k < values.size(); ++k) a.set(fmt::format("{}{}", name, k), values[k]);
  };
  set("scale", d.scale_values);
  set("parameter", parameters);
  set("seed", seeds);
}

/// The planes of a launch: `planes` of them from `first` on, of one member or of all from `member` on. In a ring,
/// plane z is at position (z + shift) mod ring; a launch takes at most `ring` of its planes, the lowest of them `below`
/// planes before `first`.
struct Slab {
  int64_t first = 0, planes = 0, ring = 0, shift = 0, member = 0, below = 0;
  static Slab whole(int64_t nz) { return {0, nz, nz, nz, 0}; }
};
inline void set_slab(Arguments& a, int64_t nz, const Slab& s) {
  // The position of the lowest plane is within the ring, so that one comparison wraps the others.
  const int64_t lowest = s.first - s.below, place = (lowest + s.shift) % s.ring;
  a.set("z_first", s.first).set("ring", s.ring).set("shift", place - lowest).set("nz", nz);
  a.set("first_member", s.member).set("member_planes", s.planes);
}

/// Planes of a slab whose cotangents and level-0 fields stay in the cache until the adjoint reads them.
int64_t choose_slab(const Discretisation& d, const Device& device, const KernelForm& form, int64_t asked);
/// Whether gradients are written past the caches: where all arrays of a run fit into the last one, they are better left
/// there.
bool past_caches(const Device& device, double bytes);

}  // namespace lockstep::pde
