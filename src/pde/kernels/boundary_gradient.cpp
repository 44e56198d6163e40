// Derivatives by the values that sides prescribe: a row of S with its constant c(b) adds g dc/db.
#include "pde/kernels/boundary_gradient.hpp"

#include <algorithm>

namespace lockstep::pde {

namespace {

/// dc/db of the rows near one end, the outermost first.
std::vector<double> constants_of(const Discretisation& d, const Target& t, const Term& term, int end) {
  Side sides[2] = {d.side(t.field_index, t.component, term.axis, 0),
                   d.side(t.field_index, t.component, term.axis, 1)};
  for (Side& side : sides) side.value = 0, side.parameter.clear();
  sides[size_t(end)].value = 1;
  const int64_t cells = d.mesh.cells[size_t(term.axis)];
  // Beyond this size both ends have the rows of any longer axis.
  const int64_t n = std::min<int64_t>(cells, 4 * (d.mesh.order / 2) + 6);
  std::vector<double> list;
  for (int64_t k = 0; k < std::min<int64_t>(n, d.mesh.order / 2); ++k) {
    double constant = 0;
    dense_row(term.stencil, d.mesh.order, sides[0], sides[1], n, end == 0 ? k : n - 1 - k, &constant);
    list.push_back(constant);
  }
  return list;
}

bool prescribed(const Side& side) { return side.rule == Rule::dirichlet_face || side.rule == Rule::ghost; }

struct LayerPart {
  const Target* target;
  const Term* term;
};

/// Fields that the derivatives of parts read.
std::vector<FieldLevel> part_fields(const Plan& plan, const std::vector<LayerPart>& parts,
                                    Access::Kind kind) {
  std::vector<Value> values;
  for (const LayerPart& p : parts) values.push_back(p.term->g);
  return fields_of(plan, values, kind);
}

/// Points kernel over the outer layers of one end of an axis. Parameters: fields, cotangents (rank 4), result
/// (parts and three axes), nx, ny, nz, scales, parameters.
Kernel layer_kernel(const Discretisation& d, const KernelForm& form, const std::vector<LayerPart>& parts,
                    int axis, int end) {
  const std::string name = fmt::format("pde.boundary.{}.{}{}", variant(d, form), char('x' + axis), end);
  return kernel(name, [&](At<3> point, Parameters& p) {
    const FieldArrays arrays(p, *d.plan, part_fields(*d.plan, parts, Access::field), form, kField),
        tangents(p, *d.plan, part_fields(*d.plan, parts, Access::tangent), form, kTangent);
    const AnyGrid cotangents = p.read("cotangents", form.scratch(), 4),
                  result = p.write("result", form.scratch(), 4);
    const Cell size{p.scalar<i32>("nx"), p.scalar<i32>("ny"), p.scalar<i32>("nz")},
        at{point.x, point.y, point.z};
    const auto place = [&](int a) {
      const size_t k = size_t(a);
      return end == 1 && a == axis ? size[k] - Index(1) - at[k] : at[k];
    };
    const Cell own{place(0), place(1), place(2)};
    const Tracer::Scalars scalars(p, d, form.type(), d.plan->second_order);
    std::optional<Tracer> tracer;
    tracer.emplace(d, form.type(), scalars, own, size, [&](const Datum& x) {
      const Cell cell = tracer->neighbour(x.at);
      if (x.kind == Access::cotangent) return cotangents.load({x.component, cell[2], cell[1], cell[0]});
      const FieldArrays& from = x.kind == Access::tangent ? tangents : arrays;
      return from.load({x.field_index, x.level}, x.component, cell, {}, size[2]);
    });
    for (size_t k = 0; k < parts.size(); ++k)
      result.store({int(k), at[2], at[1], at[0]}, tracer->value(parts[k].term->g));
  });
}

/// From the cells of the outer layers (z, y, x) to those of the side: what a row's constant carries to each.
std::vector<double> sum_layers(std::span<const double> g, const Shape& extent, int axis,
                               const std::vector<double>& constants, double scale) {
  const int64_t inner = axis == 0   ? 1
                        : axis == 1 ? extent[2]
                                    : extent[1] * extent[2],
                layers = extent[2 - axis];
  std::vector<double> side(g.size() / size_t(layers), 0.0);
  for (int64_t i = 0; i < int64_t(g.size()); ++i)
    side[size_t(i / (inner * layers) * inner + i % inner)] +=
        constants[size_t((i / inner) % layers)] * g[size_t(i)];
  for (double& x : side) x *= scale;
  return side;
}

Loss::BoundaryGradient gradient_of_part(const Discretisation& d, const Target& t, int axis, int end,
                                        std::vector<double> cells) {
  Loss::BoundaryGradient one{d.plan->fields[size_t(t.field_index)].name,
                             t.component,
                             axis,
                             end,
                             0,
                             d.side(t.field_index, t.component, axis, end).parameter,
                             {}};
  for (const double x : cells) one.value += x;
  if (!one.parameter.empty() &&
      d.side_value(t.field_index, t.component, axis, size_t(end)).kind == SideValue::profile)
    one.cells = std::move(cells);
  return one;
}

void add_to(std::vector<Loss::BoundaryGradient>& all, Loss::BoundaryGradient part) {
  for (Loss::BoundaryGradient& known : all) {
    if (known.field != part.field || known.component != part.component || known.axis != part.axis ||
        known.end != part.end)
      continue;
    known.value += part.value;
    for (size_t i = 0; i < part.cells.size(); ++i) known.cells[i] += part.cells[i];
    return;
  }
  all.push_back(std::move(part));
}

}  // namespace

Inputs member_of(const Inputs& inputs, int64_t member) {
  const auto part = [&](const Buffer& b) {
    if (!b) return b;
    const int64_t rows = b.shape()[0] / inputs.members;
    return b.rows(member * rows, rows);
  };
  Inputs one = inputs;
  one.members = 1;
  one.seed = inputs.seed / double(inputs.members);
  one.mask = part(inputs.mask);
  for (Buffer& b : one.rows) b = part(b);
  for (auto& [name, levels] : one.fields)
    for (Buffer& b : levels) b = part(b);
  return one;
}

std::vector<double> numbers_of(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<double>(buffer);
  const std::vector<float> narrow = device.download<float>(buffer);
  return {narrow.begin(), narrow.end()};
}

Buffer loss_cotangents(Loss::State& state, const Device& device, const Checked& checked, double seed) {
  const auto d = state.d;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2];
  KernelForm form = checked.form();
  form.whole = true;
  const Buffer cotangents = device.allocate(form.scratch(), {int64_t(d->plan->residuals.size()), nz, ny, nx});
  const Kernel residual = state.kernels.get(
      form_key("cotangent", form), [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  std::vector<double> seeds;
  for (double w : d->plan->weights) seeds.push_back(2 * w / double(state.whole().mesh.count()) * seed);
  Arguments a;
  checked.set_fields(a);
  set_numbers(a, *d, checked.parameters(), seeds);
  set_slab(a, nz, Slab::whole(nz));
  a.set("result", cotangents);
  device.launch_with(residual, {nz, ny, nx}, a.bind_known(residual), {});
  return cotangents;
}

std::vector<SidePart> side_parts(const Discretisation& d) {
  std::vector<SidePart> parts;
  const std::vector<Target>& targets = d.plan->targets;
  for (int axis = 0; axis < 3; ++axis)
    for (int end = 0; end < 2; ++end)
      for (size_t t = 0; t < targets.size(); ++t)
        for (size_t k = 0; k < targets[t].terms.size(); ++k)
          if (targets[t].terms[k].axis == axis &&
              prescribed(d.side(targets[t].field_index, targets[t].component, axis, end)))
            parts.push_back({axis, end, t, k});
  return parts;
}

std::vector<std::vector<double>> side_cells(Loss::State& state, const Device& device, const Checked& checked,
                                            const Buffer& cotangents, const Arguments& tangents) {
  const auto d = state.d;
  const Plan& plan = *d->plan;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2];
  KernelForm form = checked.form();
  form.whole = true;
  form.mask = false;
  Arguments common = tangents;
  checked.set_fields(common);
  set_numbers(common, *d, checked.parameters());
  common.set("cotangents", cotangents).set("nx", nx).set("ny", ny).set("nz", nz);

  std::vector<std::vector<double>> all;
  const std::vector<SidePart> sides = side_parts(*d);
  for (auto first = sides.begin(); first != sides.end();) {
    const auto [axis, end, target, term] = *first;
    const auto last = std::find_if(first, sides.end(), [&, axis = axis, end = end](const SidePart& p) {
      return p.axis != axis || p.end != end;
    });
    std::vector<LayerPart> parts;
    for (auto p = first; p != last; ++p)
      parts.push_back({&plan.targets[p->target], &plan.targets[p->target].terms[p->term]});
    first = last;
    const int64_t layers = std::min<int64_t>(d->mesh.cells[size_t(axis)], d->mesh.order / 2);
    Shape extent{nz, ny, nx};
    extent[2 - axis] = layers;
    const Kernel kernel =
        state.kernels.get(fmt::format("{} {} {}", form_key("boundary", form), axis, end),
                          [&, axis = axis, end = end] { return layer_kernel(*d, form, parts, axis, end); });
    const Buffer result =
        device.allocate(form.scratch(), {int64_t(parts.size()), extent[0], extent[1], extent[2]});
    Arguments arguments = common;
    arguments.set("result", result);
    device.launch_with(kernel, extent, arguments.bind_known(kernel), {});
    const std::vector<double> g = numbers_of(device, result);
    for (size_t k = 0; k < parts.size(); ++k) {
      const std::vector<double> constants = constants_of(*d, *parts[k].target, *parts[k].term, end);
      const double scale = d->scale_values[size_t(d->scale_index(parts[k].term->stencil, axis))];
      const auto cells = std::span(g).subspan(k * size_t(extent.elements()), size_t(extent.elements()));
      all.push_back(sum_layers(cells, extent, axis, constants, scale));
    }
  }
  return all;
}

std::vector<Loss::BoundaryGradient> sum_sides(const Discretisation& d,
                                              std::vector<std::vector<double>> cells) {
  std::vector<Loss::BoundaryGradient> all;
  const std::vector<SidePart> parts = side_parts(d);
  for (size_t k = 0; k < parts.size(); ++k)
    add_to(all, gradient_of_part(d, d.plan->targets[parts[k].target], parts[k].axis, parts[k].end,
                                 std::move(cells[k])));
  return all;
}

std::vector<Loss::BoundaryGradient> side_gradients(Loss::State& state, const Device& device,
                                                   const Checked& checked, const Buffer& cotangents,
                                                   const Arguments& tangents) {
  return sum_sides(*state.d, side_cells(state, device, checked, cotangents, tangents));
}

std::vector<Loss::BoundaryGradient> Loss::boundary_gradients(const Device& device,
                                                             const Inputs& inputs) const {
  const Checked checked(*state_->d, device, inputs);
  if (inputs.members == 1)
    return side_gradients(*state_, device, checked, loss_cotangents(*state_, device, checked, inputs.seed));
  std::vector<BoundaryGradient> mean;  // over the members
  for (int64_t m = 0; m < inputs.members; ++m) {
    const std::vector<BoundaryGradient> one = boundary_gradients(device, member_of(inputs, m));
    if (m == 0) {
      mean = one;
      continue;
    }
    for (size_t k = 0; k < mean.size(); ++k) {
      mean[k].value += one[k].value;
      for (size_t i = 0; i < mean[k].cells.size(); ++i) mean[k].cells[i] += one[k].cells[i];
    }
  }
  return mean;
}

}  // namespace lockstep::pde
