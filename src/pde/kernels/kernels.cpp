#include "pde/kernels/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/error.hpp"
#include "primitives/sums/chunked_sum.hpp"

namespace lockstep::pde {

std::vector<FieldLevel> fields_of(const Plan& plan, std::span<const Value> values, Access::Kind kind) {
  std::vector<FieldLevel> list;
  const std::vector<uint32_t> leaves = values.empty() ? std::vector<uint32_t>() : autodiff::leaves_of(values);
  for (int f = 0; f < int(plan.fields.size()); ++f)
    for (int level = -1; level <= plan.last_level; ++level)
      for (uint32_t leaf : leaves) {
        const Access& a = plan.accesses[leaf];
        if (a.kind != kind || a.field_index != f || a.level != level) continue;
        list.push_back({f, level});
        break;
      }
  return list;
}

std::vector<const Target*> targets_of(const Plan& plan, const FieldLevel& where) {
  std::vector<const Target*> list;
  for (const Target& t : plan.targets)
    if (t.field_index == where.field_index && t.level == where.level) list.push_back(&t);
  return list;
}

std::vector<Value> adjoint_values(const Plan& plan, const std::vector<FieldLevel>& outputs) {
  std::vector<Value> values;
  for (const FieldLevel& o : outputs)
    for (const Target* t : targets_of(plan, o)) {
      if (t->point) values.push_back(*t->point);
      for (const Term& term : t->terms) values.push_back(term.g);
    }
  return values;
}

std::vector<FieldLevel> adjoint_fields(const Plan& plan, const std::vector<FieldLevel>& outputs) {
  return fields_of(plan, adjoint_values(plan, outputs), Access::field);
}

std::vector<AnyVal> seed_scalars(Parameters& p, const Plan& plan, Type type) {
  std::vector<AnyVal> seeds;
  for (size_t k = 0; k < plan.residuals.size(); ++k)
    seeds.push_back(p.scalar(fmt::format("seed{}", k), type));
  return seeds;
}

std::string variant(const Discretisation& d, const KernelForm& form) {
  std::string text = fmt::format("{}.order{}.", lockstep::name(form.storage), d.mesh.order);
  for (bool wraps : d.wraps) text += wraps ? 'p' : 'e';
  return text + (form.mask ? ".masked" : "") + (form.rows ? ".rows" : "") + (form.batch ? ".batch" : "") +
         (form.part ? ".part" : "");
}

std::string array_name(const char* what, const Plan& plan, const FieldLevel& f) {
  if (f.field_index < 0) return fmt::format("{}_rows_{}", what, f.level + 1);
  std::string text = plan.fields[size_t(f.field_index)].name;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return fmt::format("{}{}_{}_{}", what, f.field_index, text, f.level + 1);
}

FieldArrays::FieldArrays(Parameters& p, const Plan& plan, const std::vector<FieldLevel>& list,
                         const KernelForm& form, const char* what)
    : plan_(plan), form_(form) {
  std::vector<FieldLevel> arrays = list;
  if (form.rows) {
    arrays.clear();
    for (int level : levels(list)) arrays.push_back({-1, level});
  }
  const bool gradient = std::string_view(what) == kGradient;  // equal texts may have several addresses
  for (const FieldLevel& f : arrays) {
    const std::string name = array_name(what, plan, f);
    buffers_.emplace_back(f, gradient ? p.write(name, form.storage, 4) : p.read(name, form.storage, 4));
  }
}

std::vector<int> FieldArrays::levels(const std::vector<FieldLevel>& list) {
  std::vector<int> found;
  for (const FieldLevel& f : list)
    if (std::find(found.begin(), found.end(), f.level) == found.end()) found.push_back(f.level);
  std::sort(found.begin(), found.end());
  return found;
}

int FieldArrays::column(const Plan& plan, int field_index, int component) {
  for (int f = 0; f < field_index; ++f) component += plan.fields[size_t(f)].components;
  return component;
}
int FieldArrays::width(const Plan& plan) { return column(plan, int(plan.fields.size()), 0); }

const AnyGrid& FieldArrays::buffer(const FieldLevel& f) const {
  const FieldLevel wanted{form_.rows ? -1 : f.field_index, f.level};
  return std::find_if(buffers_.begin(), buffers_.end(), [&](const auto& b) { return b.first == wanted; })
      ->second;
}

std::array<Index, 4> FieldArrays::place(const FieldLevel& f, int component, const Cell& at,
                                        const Index& member, const Index& nz) const {
  if (form_.rows)
    return {member.empty() ? at[2] : member * nz + at[2], at[1], at[0],
            column(plan_, f.field_index, component)};
  const Index own = component;
  return {member.empty() ? own : member * plan_.fields[size_t(f.field_index)].components + own, at[2], at[1],
          at[0]};
}
AnyVal FieldArrays::load(const FieldLevel& f, int component, const Cell& at, const Index& member,
                         const Index& nz) const {
  const std::array<Index, 4> c = place(f, component, at, member, nz);
  return buffer(f).load({c[0], c[1], c[2], c[3]});
}
void FieldArrays::store(const FieldLevel& f, int component, const Cell& at, const Index& member,
                        const Index& nz, const AnyVal& value, bool streaming) const {
  const std::array<Index, 4> c = place(f, component, at, member, nz);
  buffer(f).streaming(streaming).store({c[0], c[1], c[2], c[3]}, value);
}

SlabPlace::SlabPlace(Parameters& p, const At<3>& at, const Discretisation& of, const KernelForm& form)
    : d(of),
      whole(form.whole),
      z_first(p.scalar<i32>("z_first")),
      ring(p.scalar<i32>("ring")),
      shift(p.scalar<i32>("shift")),
      nz(p.scalar<i32>("nz")) {
  Index in_member = at.z;
  if (form.batch) {
    const Index first = p.scalar<i32>("first_member"), planes = p.scalar<i32>("member_planes");
    member = first + in_member / planes;
    in_member = in_member % planes;
  }
  z_unwrapped = in_member + z_first;
  Index z = z_unwrapped;
  if (d.wraps[2]) {
    z = select(z < 0, z + nz, z);
    z = select(z < nz, z, z - nz);
  }
  own = {at.x, at.y, z};
  size = {at.extent(0), at.extent(1), nz};
  slot = slot_of(whole ? z : z_unwrapped);
}

Index SlabPlace::member_plane(const Index& plane) const {
  return member.empty() ? plane : member * nz + plane;
}
Index SlabPlace::slot_of(const Index& plane) const {
  if (whole) return member_plane(plane);
  const Index moved = plane + shift;
  return select(moved < ring, moved, moved - ring);
}
Index SlabPlace::slot_at(Tracer& tracer, int dz) const {
  if (dz == 0) return slot;
  return slot_of(d.wraps[2] && !whole ? z_unwrapped + dz : tracer.coordinate(2, dz));
}

Kernel residual_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, ResidualKind kind) {
  static constexpr const char* kNames[] = {"pde.cotangent", "pde.residual", "pde.tangent",
                                           "pde.tangent_of_all", "pde.cotangent_tangent"};
  const Plan& plan = *d->plan;
  const std::string name =
      fmt::format("{}.{}.{}", kNames[int(kind)], variant(*d, form), plan.residuals.size());
  return kernel(name, [&](At<3> at, Parameters& p) {
    const bool slope = kind == ResidualKind::cotangent_tangent,
               cotangent = slope || kind == ResidualKind::cotangent,
               all = slope || kind == ResidualKind::tangent_of_all,
               tangent = all || kind == ResidualKind::tangent;
    const std::vector<Value>& outputs = all ? plan.tangents_of_all : tangent ? plan.tangents : plan.residuals;
    const FieldArrays arrays(p, plan, fields_of(plan, outputs, Access::field), form, kField);
    const FieldArrays tangents(
        p, plan, tangent ? fields_of(plan, outputs, Access::tangent) : std::vector<FieldLevel>(), form,
        kTangent);
    std::optional<AnyGrid> mask;
    if (cotangent && form.mask) mask = p.read("mask", form.storage, 3);
    const AnyGrid result = p.write("result", form.scratch(), 4);
    const SlabPlace place(p, at, *d, form);
    const Tracer::Scalars scalars(p, *d, form.type(), all);
    const std::vector<AnyVal> seeds = cotangent ? seed_scalars(p, plan, form.type()) : std::vector<AnyVal>();
    std::optional<Tracer> tracer;
    tracer.emplace(*d, form.type(), scalars, place.own, place.size, [&](const Datum& x) {
      const FieldArrays& from = x.kind == Access::tangent ? tangents : arrays;
      return from.load({x.field_index, x.level}, x.component, tracer->neighbour(x.at), place.member,
                       place.nz);
    });
    AnyVal m;
    if (mask) m = mask->load({place.member_plane(place.own[2]), place.own[1], place.own[0]});
    for (size_t k = 0; k < outputs.size(); ++k) {
      AnyVal r = tracer->value(outputs[k]);
      if (cotangent) r = rounded_product(m.empty() ? seeds[k] : rounded_product(seeds[k], m), r);
      result.store({int(k), place.slot, place.own[1], place.own[0]}, r);
    }
  });
}

Kernel adjoint_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                      std::vector<FieldLevel> outputs) {
  const Plan& plan = *d->plan;
  const std::string name = fmt::format("pde.adjoint.{}.{}", variant(*d, form), outputs.size());
  return kernel(name, [&](At<3> at, Parameters& p) {
    const std::vector<Value> values = adjoint_values(plan, outputs);
    const FieldArrays arrays(p, plan, fields_of(plan, values, Access::field), form, kField),
        tangents(p, plan, fields_of(plan, values, Access::tangent), form, kTangent);
    const AnyGrid cotangents = p.read("cotangents", form.scratch(), 4);
    const FieldArrays gradients(p, plan, outputs, form, kGradient);
    const SlabPlace place(p, at, *d, form);
    const Tracer::Scalars scalars(p, *d, form.type(), plan.second_order);
    std::optional<Tracer> tracer;
    tracer.emplace(*d, form.type(), scalars, place.own, place.size, [&](const Datum& x) {
      if (x.kind == Access::cotangent)
        return cotangents.load({x.component, place.slot_at(*tracer, x.at[2]), tracer->coordinate(1, x.at[1]),
                                tracer->coordinate(0, x.at[0])});
      const FieldArrays& from = x.kind == Access::tangent ? tangents : arrays;
      return from.load({x.field_index, x.level}, x.component, tracer->neighbour(x.at), place.member,
                       place.nz);
    });
    for (const FieldLevel& o : outputs)
      for (const Target* t : targets_of(plan, o))
        gradients.store(o, t->component, place.own, place.member, place.nz, tracer->gradient(*t),
                        form.streaming);
  });
}

Kernel parameter_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form) {
  const Plan& plan = *d->plan;
  std::vector<Value> values;
  for (const Plan::ByParameter& by : plan.by_parameter) values.push_back(by.value);
  const std::string name = fmt::format("pde.by_parameter.{}.{}", variant(*d, form), values.size());
  return kernel(name, [&](At<3> at, Parameters& p) {
    const FieldArrays arrays(p, plan, fields_of(plan, values, Access::field), form, kField),
        tangents(p, plan, fields_of(plan, values, Access::tangent), form, kTangent);
    const AnyGrid cotangents = p.read("cotangents", form.scratch(), 4),
                  result = p.write("result", form.scratch(), 4);
    const SlabPlace place(p, at, *d, form);
    const Tracer::Scalars scalars(p, *d, form.type(), plan.second_order);
    std::optional<Tracer> tracer;
    tracer.emplace(*d, form.type(), scalars, place.own, place.size, [&](const Datum& x) {
      if (x.kind == Access::cotangent)
        return cotangents.load({x.component, place.slot, place.own[1], place.own[0]});
      const FieldArrays& from = x.kind == Access::tangent ? tangents : arrays;
      return from.load({x.field_index, x.level}, x.component, tracer->neighbour(x.at), place.member,
                       place.nz);
    });
    for (size_t k = 0; k < values.size(); ++k)
      result.store({int(k), place.slot, place.own[1], place.own[0]}, tracer->value(values[k]));
  });
}

Kernel partial_kernel(const KernelForm& form, Type sum) {
  KernelOptions options;
  options.group = {kReduceLanes, 1, 1};
  const std::string name = fmt::format("pde.partial_sums.{}.{}{}", lockstep::name(form.storage),
                                       lockstep::name(sum), form.mask ? ".masked" : "");
  const auto body = [&](Group<3> g, Parameters& p) {
    const AnyGrid cotangents = p.read("cotangents", form.scratch(), 3);
    std::optional<AnyGrid> mask;
    if (form.mask) mask = p.read("mask", form.storage, 2);
    const AnyGrid partial = p.write("partial", sum == Type::f64 ? Storage::f64 : Storage::f32, 3);
    const Val<i32> z_first = p.scalar<i32>("z_first"), ring = p.scalar<i32>("ring"),
                   shift = p.scalar<i32>("shift");
    const Val<i32> z = g.id(1) + z_first, slot = (z + shift) % ring,
                   first = g.id(0) * kReduceChunk + g.lane(), size = cotangents.size(2);
    const AnyVal zero = AnyVal::number(sum, 0);
    AnyVar total = zero;
    for (int step = 0; step < kReduceChunk / kReduceLanes; ++step) {
      const Val<i32> at = first + step * kReduceLanes;
      if_(at < size, [&] {
        const AnyVal c = cotangents.load_as(sum, {g.id(2), slot, at});
        AnyVal weighted = c;
        if (mask) {
          const AnyVal m = mask->load_as(sum, {z, at});
          const Val<bool> none = m == zero;
          weighted = select(none, zero, c / select(none, 1, m));
        }
        total = fma(weighted, c, total);
      });
    }
    const AnyVal all = group_sum(total);
    if_(g.lane() == 0, [&] { partial.store({g.id(2), z, g.id(0)}, all); });
  };
  return kernel(name, body, options);
}

Kernel total_kernel(Type sum) {
  const auto body = [&](Group<1> g, Parameters& p) {
    const Storage storage = sum == Type::f64 ? Storage::f64 : Storage::f32;
    const AnyGrid partial = p.read("partial", storage, 2), out = p.write("totals", storage, 1);
    const AnyVal all = primitives::strided_sum(
        sum, g.lane(), 0, partial.size(1),
        [&](const AnyVal& total, const Val<i32>& at) { return total + partial.load({g.id(), at}); });
    if_(g.lane() == 0, [&] { out.store({g.id()}, all); });
  };
  return kernel(fmt::format("pde.total.{}", lockstep::name(sum)), body, primitives::kSumGroup);
}

}  // namespace lockstep::pde
