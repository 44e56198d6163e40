#include "pde/kernels/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::pde {

using ir::Id;

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

std::string variant(const Discretisation& d, const KernelForm& form) {
  std::string text = fmt::format("{}.order{}.", lockstep::name(form.storage), d.mesh.order);
  for (bool wraps : d.wraps) text += wraps ? 'p' : 'e';
  return text + (form.mask ? ".masked" : "") + (form.rows ? ".rows" : "") + (form.batch ? ".batch" : "");
}

namespace {

ir::Builder& builder() { return lockstep::detail::builder(); }

}  // namespace

FieldArrays::FieldArrays(const Plan& plan, std::vector<FieldLevel> list, const KernelForm& form,
                         const char* prefix, ir::Access access)
    : plan_(plan), list_(std::move(list)), form_(form) {
  if (form.rows)
    for (int level : levels(list_))
      buffers_.emplace_back(fmt::format("{}rows_{}", prefix, level + 1), form.storage, 4, access);
  else
    for (const FieldLevel& f : list_)
      buffers_.emplace_back(
          fmt::format("{}{}_{}", prefix, plan.fields[size_t(f.field_index)].name, f.level + 1), form.storage,
          4, access);
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

const RawBuffer& FieldArrays::buffer(const FieldLevel& f) const {
  if (form_.rows) {
    const std::vector<int> all = levels(list_);
    return buffers_[size_t(std::find(all.begin(), all.end(), f.level) - all.begin())];
  }
  return buffers_[size_t(std::find(list_.begin(), list_.end(), f) - list_.begin())];
}

std::array<Id, 4> FieldArrays::place(const FieldLevel& f, int component, const std::array<Id, 3>& at,
                                     Id member, Id nz) const {
  ir::Builder& b = builder();
  const auto of_member = [&](Id count, Id own) {
    return member == ir::kNone
               ? own
               : b.op(ir::Op::iadd, {b.op(ir::Op::imul, {member, count}, ir::kNoWrap), own}, ir::kNoWrap);
  };
  if (form_.rows) return {of_member(nz, at[2]), at[1], at[0], b.i32(column(plan_, f.field_index, component))};
  return {of_member(b.i32(plan_.fields[size_t(f.field_index)].components), b.i32(component)), at[2], at[1],
          at[0]};
}
Id FieldArrays::load(const FieldLevel& f, int component, const std::array<Id, 3>& at, Id member,
                     Id nz) const {
  const std::array<Id, 4> p = place(f, component, at, member, nz);
  return buffer(f).load({p[0], p[1], p[2], p[3]});
}
void FieldArrays::store(const FieldLevel& f, int component, const std::array<Id, 3>& at, Id member, Id nz,
                        Id value, bool streaming) const {
  const std::array<Id, 4> p = place(f, component, at, member, nz);
  buffer(f).store({p[0], p[1], p[2], p[3]}, value, streaming);
}

SlabPlace::SlabPlace(const Discretisation& d, const KernelForm& form) : whole(form.whole), batch(form.batch) {
  ir::Builder& b = builder();
  z_first = add_scalar("z_first", Type::i32);
  ring = add_scalar("ring", Type::i32);
  shift = add_scalar("shift", Type::i32);
  nz = add_scalar("nz", Type::i32);
  Id in_member = b.emit(ir::Op::coord, Type::i32, {}, 2);
  if (batch) {
    const Id first = add_scalar("first_member", Type::i32), planes = add_scalar("member_planes", Type::i32);
    member = b.op(ir::Op::iadd, {first, b.op(ir::Op::idiv, {in_member, planes})}, ir::kNoWrap);
    in_member = b.op(ir::Op::irem, {in_member, planes});
  }
  z_unwrapped = b.op(ir::Op::iadd, {in_member, z_first}, ir::kNoWrap);
  Id z = z_unwrapped;
  if (d.wraps[2]) {
    z = b.select(b.op(ir::Op::ilt, {z, b.i32(0)}), b.op(ir::Op::iadd, {z, nz}, ir::kNoWrap), z);
    z = b.select(b.op(ir::Op::ilt, {z, nz}), z, b.op(ir::Op::isub, {z, nz}, ir::kNoWrap));
  }
  own = {b.emit(ir::Op::coord, Type::i32, {}, 0), b.emit(ir::Op::coord, Type::i32, {}, 1), z};
  size = {b.emit(ir::Op::extent, Type::i32, {}, 0), b.emit(ir::Op::extent, Type::i32, {}, 1), nz};
  slot = whole ? slot_of(z) : slot_of(z_unwrapped);
}

Id SlabPlace::member_plane(Id plane) const {
  ir::Builder& b = builder();
  return member == ir::kNone
             ? plane
             : b.op(ir::Op::iadd, {b.op(ir::Op::imul, {member, nz}, ir::kNoWrap), plane}, ir::kNoWrap);
}

Id SlabPlace::slot_of(Id plane) const {
  ir::Builder& b = builder();
  if (whole && !batch) return plane;
  if (whole) return b.op(ir::Op::iadd, {b.op(ir::Op::imul, {member, nz}, ir::kNoWrap), plane}, ir::kNoWrap);
  return b.op(ir::Op::irem, {b.op(ir::Op::iadd, {plane, shift}, ir::kNoWrap), ring});
}

Id SlabPlace::slot_at(Tracer& tracer, const Discretisation& d, int dz) const {
  if (dz == 0) return slot;
  ir::Builder& b = builder();
  return slot_of(d.wraps[2] && !whole ? b.op(ir::Op::iadd, {z_unwrapped, b.i32(dz)}, ir::kNoWrap)
                                      : tracer.coordinate(2, dz));
}

Kernel residual_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, ResidualKind kind) {
  static constexpr const char* kNames[] = {"pde.cotangent", "pde.residual", "pde.tangent"};
  return Kernel::trace(
      fmt::format("{}.{}.{}", kNames[int(kind)], variant(*d, form), d->plan->residuals.size()),
      ir::Domain::points, 3, {}, [d, form, kind](ir::Builder& b) {
        const Plan& plan = *d->plan;
        const std::vector<Value>& outputs = kind == ResidualKind::tangent ? plan.tangents : plan.residuals;
        const std::vector<FieldLevel> fields = fields_of(plan, outputs, Access::field);
        const std::vector<FieldLevel> moved = kind == ResidualKind::tangent
                                                  ? fields_of(plan, outputs, Access::tangent)
                                                  : std::vector<FieldLevel>();
        const FieldArrays arrays(plan, fields, form, "", ir::Access::read),
            tangents(plan, moved, form, "tangent_", ir::Access::read);
        std::optional<RawBuffer> mask;
        const bool cotangent = kind == ResidualKind::cotangent;
        if (cotangent && form.mask) mask.emplace("mask", form.storage, 3, ir::Access::read);
        const RawBuffer result("result", form.scratch(), 4, ir::Access::write);
        const SlabPlace place(*d, form);
        const Tracer::Scalars scalars = Tracer::declare(*d, form.type());
        std::vector<Id> seeds;
        if (cotangent)
          for (size_t k = 0; k < outputs.size(); ++k)
            seeds.push_back(add_scalar(fmt::format("seed{}", k), form.type()));

        std::optional<Tracer> tracer;
        tracer.emplace(*d, form.type(), scalars, place.own, place.size, [&](const Datum& x) {
          const FieldArrays& from = x.kind == Access::tangent ? tangents : arrays;
          return from.load({x.field_index, x.level}, x.component, tracer->neighbour(x.at), place.member,
                           place.nz);
        });
        std::optional<Id> m;
        if (mask) m = mask->load({place.member_plane(place.own[2]), place.own[1], place.own[0]});
        for (size_t k = 0; k < outputs.size(); ++k) {
          Id r = tracer->value(outputs[k]);
          if (cotangent) {
            const Id weight = m ? b.op(ir::Op::fmul, {seeds[k], *m}, ir::kNoContract) : seeds[k];
            r = b.op(ir::Op::fmul, {weight, r}, ir::kNoContract);
          }
          result.store({b.i32(int(k)), place.slot, place.own[1], place.own[0]}, r);
        }
      });
}

Kernel adjoint_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                      std::vector<FieldLevel> outputs) {
  return Kernel::trace(
      fmt::format("pde.adjoint.{}.{}", variant(*d, form), outputs.size()), ir::Domain::points, 3, {},
      [d, form, outputs](ir::Builder& b) {
        const Plan& plan = *d->plan;
        std::vector<Value> values;
        for (const FieldLevel& o : outputs)
          for (const Target* t : targets_of(plan, o)) {
            if (t->point) values.push_back(*t->point);
            for (const Term& term : t->terms) values.push_back(term.g);
          }
        const std::vector<FieldLevel> fields = fields_of(plan, values, Access::field);
        const FieldArrays arrays(plan, fields, form, "", ir::Access::read);
        const RawBuffer cotangents("cotangents", form.scratch(), 4, ir::Access::read);
        const FieldArrays gradients(plan, outputs, form, "d_", ir::Access::write);
        const SlabPlace place(*d, form);
        const Tracer::Scalars scalars = Tracer::declare(*d, form.type());
        std::optional<Tracer> tracer;
        tracer.emplace(*d, form.type(), scalars, place.own, place.size, [&](const Datum& x) {
          if (x.kind == Access::cotangent)
            return cotangents.load({b.i32(x.component), place.slot_at(*tracer, *d, x.at[2]),
                                    tracer->coordinate(1, x.at[1]), tracer->coordinate(0, x.at[0])});
          return arrays.load({x.field_index, x.level}, x.component, tracer->neighbour(x.at), place.member,
                             place.nz);
        });
        for (const FieldLevel& o : outputs)
          for (const Target* t : targets_of(plan, o))
            gradients.store(o, t->component, place.own, place.member, place.nz, tracer->gradient(*t),
                            form.streaming);
      });
}

Kernel partial_kernel(const KernelForm& form, Type sum) {
  KernelOptions options;
  options.group = {kReduceLanes, 1, 1};
  return Kernel::trace(
      fmt::format("pde.partial_sums.{}.{}{}", lockstep::name(form.storage), lockstep::name(sum),
                  form.mask ? ".masked" : ""),
      ir::Domain::groups, 3, options, [form, sum](ir::Builder& b) {
        const RawBuffer cotangents("cotangents", form.scratch(), 3, ir::Access::read);
        std::optional<RawBuffer> mask;
        if (form.mask) mask.emplace("mask", form.storage, 2, ir::Access::read);
        const RawBuffer partial("partial", sum == Type::f64 ? Storage::f64 : Storage::f32, 3,
                                ir::Access::write);
        const Val<i32> z_first = Val<i32>::from(add_scalar("z_first", Type::i32)),
                       ring = Val<i32>::from(add_scalar("ring", Type::i32)),
                       shift = Val<i32>::from(add_scalar("shift", Type::i32));
        const Group<3> g;
        const Val<i32> z = g.id(1) + z_first, slot = (z + shift) % ring,
                       first = g.id(0) * kReduceChunk + g.lane(), size = cotangents.size(2);
        const ir::Id zero = b.number(sum, 0), total = b.variable(zero);
        for (int step = 0; step < kReduceChunk / kReduceLanes; ++step) {
          const Val<i32> at = first + step * kReduceLanes;
          if_(at < size, [&] {
            const Id c = b.convert(sum, cotangents.load({g.id(2).id(), slot.id(), at.id()}));
            Id weighted = c;
            if (mask) {
              const Id m = b.convert(sum, mask->load({z.id(), at.id()}));
              const Id none = b.op(ir::Op::feq, {m, zero});
              weighted = b.select(none, zero, b.op(ir::Op::fdiv, {c, b.select(none, b.number(sum, 1), m)}));
            }
            b.set(total, b.op(ir::Op::fma, {weighted, c, b.get(total)}));
          });
        }
        const Id all = b.emit(ir::Op::group_reduce, sum, {b.get(total)}, uint64_t(ir::Reduction::add));
        if_(g.lane() == 0, [&] { partial.store({g.id(2).id(), z.id(), g.id(0).id()}, all); });
      });
}

Kernel total_kernel(Type sum) {
  KernelOptions options;
  options.group = {kReduceLanes, 1, 1};
  return Kernel::trace(
      fmt::format("pde.total.{}", lockstep::name(sum)), ir::Domain::groups, 1, options,
      [sum](ir::Builder& b) {
        const Storage storage = sum == Type::f64 ? Storage::f64 : Storage::f32;
        const RawBuffer partial("partial", storage, 2, ir::Access::read),
            out("totals", storage, 1, ir::Access::write);
        const Group<1> g;
        const Id total = b.variable(b.number(sum, 0));
        for_(g.lane(), partial.size(1), kReduceLanes, [&](Val<i32> at) {
          b.set(total, b.op(ir::Op::fadd, {b.get(total), partial.load({g.id().id(), at.id()})}));
        });
        const Id all = b.emit(ir::Op::group_reduce, sum, {b.get(total)}, uint64_t(ir::Reduction::add));
        if_(g.lane() == 0, [&] { out.store({g.id().id()}, all); });
      });
}

Kernel add_kernel(Storage storage) {
  return Kernel::trace("pde.add", ir::Domain::points, 3, {}, [storage](ir::Builder& b) {
    const RawBuffer a("a", storage, 3, ir::Access::read_write), other("b", storage, 3, ir::Access::read);
    const Id z = b.emit(ir::Op::coord, Type::i32, {}, 2), y = b.emit(ir::Op::coord, Type::i32, {}, 1),
             x = b.emit(ir::Op::coord, Type::i32, {}, 0);
    a.store({z, y, x}, b.op(ir::Op::fadd, {a.load({z, y, x}), other.load({z, y, x})}));
  });
}

}  // namespace lockstep::pde
