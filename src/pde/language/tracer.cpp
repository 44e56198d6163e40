#include "pde/language/tracer.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {

AnyVal add(const AnyVal& a, const AnyVal& b) { return a.empty() ? b : a + b; }
/// sum + weight * value.
AnyVal accumulate(const AnyVal& sum, const AnyVal& weight, const AnyVal& value) {
  return sum.empty() ? rounded_product(weight, value) : fma(weight, value, sum);
}
AnyVal accumulate(const AnyVal& sum, double weight, const AnyVal& value) {
  if (weight == 1) return add(sum, value);
  if (weight == -1) return sum.empty() ? -value : sum - value;
  return accumulate(sum, AnyVal::number(value.type(), weight), value);
}
double weight_at(const std::vector<Tap>& taps, int offset) {
  for (const Tap& t : taps)
    if (t.offset == offset) return t.weight;
  return 0;
}

/// Whether the interior row, read with clamped coordinates, is this row.
bool clamping_gives(const Row& row, const std::vector<Tap>& taps) {
  if (row.affine()) return false;
  std::map<int, double> weights;
  for (const Tap& t : taps) {
    const int offset = row.high ? std::min(t.offset, row.at) : std::max(t.offset, -row.at);
    weights[offset] += t.weight;
  }
  for (const Tap& t : row.taps) weights[t.offset] -= t.weight;
  for (const auto& [offset, weight] : weights)
    if (weight != 0) return false;
  return true;
}

}  // namespace

Tracer::Scalars::Scalars(Parameters& p, const Discretisation& d, Type type, bool with_tangents)
    : tangents(with_tangents) {
  for (size_t k = 0; k < d.scales.size(); ++k) scales.push_back(p.scalar(fmt::format("scale{}", k), type));
  for (size_t k = 0; k < d.plan->parameters.size(); ++k)
    parameters.push_back(p.scalar(fmt::format("parameter{}", k), type));
  const Storage storage = type == Type::f64 ? Storage::f64 : Storage::f32;
  for (size_t k = 0; k < d.plan->profiles.size(); ++k)
    profiles.push_back(p.read(fmt::format("profile{}", k), storage, 2));
  if (!tangents) return;
  for (size_t k = 0; k < parameters.size(); ++k)
    parameter_tangents.push_back(p.scalar(fmt::format("parameter_tangent{}", k), type));
  for (size_t k = 0; k < profiles.size(); ++k)
    profile_tangents.push_back(p.read(fmt::format("profile_tangent{}", k), storage, 2));
}

Tracer::Tracer(const Discretisation& d, Type type, const Scalars& scalars, const Cell& own, const Cell& size,
               Load load)
    : d_(d), type_(type), scalars_(scalars), own_(own), size_(size), load_(std::move(load)) {}

Index Tracer::coordinate(int axis, int offset) {
  const auto found = coordinates_.find({axis, offset});
  if (found != coordinates_.end()) return found->second;
  const Index own = own_[size_t(axis)], n = size_[size_t(axis)];
  Index c = own;
  if (offset != 0) {
    const Index moved = own + offset;
    if (!d_.wraps[size_t(axis)])
      c = clamp_index(moved, n);
    else if (offset < 0)
      c = select(own < -offset, moved + n, moved);
    else
      c = select(moved < n, moved, moved - n);
  }
  return coordinates_[{axis, offset}] = c;
}

Val<bool> Tracer::row_condition(const Row& row, int axis, int offset) {
  const int at = row.high ? row.at + offset : row.at - offset;
  const auto key = std::make_tuple(axis, row.high, at);
  if (const auto found = conditions_.find(key); found != conditions_.end()) return found->second;
  const Index bound = row.high ? size_[size_t(axis)] + (-1 - at) : Index(at);
  return conditions_.emplace(key, own_[size_t(axis)] == bound).first->second;
}

AnyVal Tracer::datum(const Datum& d) {
  const auto [entry, added] = data_.try_emplace(d.key());
  if (added) entry->second = load_(d);
  return entry->second;
}

AnyVal Tracer::side_value(const Access& a, size_t end, const Offset& at) {
  const SideValue given = d_.side_value(a.field_index, a.component, a.axis, end);
  const bool tangent = a.kind == Access::tangent;
  if (given.kind == SideValue::parameter)
    return (tangent ? scalars_.parameter_tangents : scalars_.parameters)[size_t(given.number)];
  const int outer = a.axis == 2 ? 1 : 2, inner = a.axis == 0 ? 1 : 0;
  return (tangent ? scalars_.profile_tangents : scalars_.profiles)[size_t(given.number)].load(
      {coordinate(outer, at[size_t(outer)]), coordinate(inner, at[size_t(inner)])});
}

AnyVal Tracer::combine(const std::vector<Tap>& taps, const std::function<AnyVal(int)>& get) {
  int radius = 0;
  for (const Tap& t : taps) radius = std::max(radius, std::abs(t.offset));
  AnyVal sum;
  for (int k = 1; k <= radius; ++k) {
    const double up = weight_at(taps, k), down = weight_at(taps, -k);
    if (up != 0 && (up == -down || up == down)) {
      const AnyVal above = get(k), below = get(-k);
      sum = accumulate(sum, up, up == down ? above + below : above - below);
    } else {
      if (up != 0) sum = accumulate(sum, up, get(k));
      if (down != 0) sum = accumulate(sum, down, get(-k));
    }
  }
  if (const double centre = weight_at(taps, 0); centre != 0) sum = accumulate(sum, centre, get(0));
  return sum;
}

AnyVal Tracer::edge_row(const Row& row, const Taken& taken) {
  const bool affine = bool(taken.side_value);
  AnyVal value;
  // Where two cells have the weight -1, the negative of their sum: so OddEnds give the same bits.
  const bool negative = row.taps.size() == 2 && row.taps[0].weight == -1 && row.taps[1].weight == -1;
  for (const Tap& t : row.taps) value = accumulate(value, negative ? 1 : t.weight, taken.get(t.offset));
  if (affine && taken.constant && row.constant != 0)
    value = add(value, AnyVal::number(type_, negative ? -row.constant : row.constant));
  if (negative) value = -value;
  for (size_t end = 0; end < 2 && affine; ++end)
    if (row.of_side[end] != 0) value = accumulate(value, row.of_side[end], taken.side_value(end));
  return value.empty() ? AnyVal::number(type_, 0) : value;
}

bool Tracer::Taken::changes(const Row& row) const { return !extends || !clamping_gives(row, taps); }

AnyVal Tracer::with_edges(const AnyVal& inner, const Taken& t, int axis, const Offset& at) {
  AnyVal sum = inner;
  for (const Row& row : t.rows)
    if (edges_ && t.changes(row))
      sum = select(row_condition(row, axis, at[size_t(axis)]), edge_row(row, t), sum);
  return sum;
}

AnyVal Tracer::at_end(const AnyVal& inner, const Taken& t, int axis, const End& end, const AnyVal& scale) {
  AnyVal sum = inner;
  for (const Row& row : t.rows) {
    if (row.high != end.high || !t.changes(row)) continue;
    AnyVal value = edge_row(row, t);
    if (!scale.empty()) value = rounded_product(scale, value);
    sum = end.width == 1 ? value : select(row_condition(row, axis, 0), value, sum);
  }
  return sum;
}

void EdgeWidth::widen(const std::vector<Row>& rows, const std::vector<Tap>& taps) {
  for (const Row& row : rows) {
    if (clamping_gives(row, taps)) continue;
    int& width = row.high ? high : low;
    width = std::max(width, row.at + 1);
  }
}

std::optional<OddEnds> OddEnds::of(const std::vector<Row>& rows, const std::vector<Tap>& taps) {
  const double ahead = weight_at(taps, 1);
  if (taps.size() != 2 || std::abs(ahead) != 1 || weight_at(taps, -1) != -ahead) return {};
  OddEnds ends;
  for (const Row& row : rows) {
    if (clamping_gives(row, taps)) continue;
    const double weight = row.high ? -ahead : ahead;
    if (row.affine() || row.at != 0 || row.taps.size() != 2 || weight_at(row.taps, 0) != weight ||
        weight_at(row.taps, row.high ? -1 : 1) != weight)
      return {};
    (row.high ? ends.high : ends.low) = true;
  }
  return ends;
}

Tracer::Taken Tracer::taken(const Access& a, const Offset& at) {
  const AxisOperator& op = d_.of(a.field_index, a.component, a.stencil, a.axis);
  Taken t{op.taps, op.rows, {}, {}, true, a.kind == Access::field};
  t.get = [this, a, at](int k) {
    Offset moved = at;
    moved[size_t(a.axis)] += k;
    return datum({a.kind, a.field_index, a.component, a.level, moved});
  };
  if (a.kind == Access::field || scalars_.tangents)
    t.side_value = [this, a, at](size_t end) { return side_value(a, end, at); };
  return t;
}

AnyVal Tracer::difference(const Access& a, const Offset& at, bool edges) {
  const Taken t = taken(a, at);
  const AnyVal inner = combine(t.taps, t.get);
  return rounded_product(scale(a.stencil, a.axis), edges ? with_edges(inner, t, a.axis, at) : inner);
}

AnyVal Tracer::difference_at(const End& end, const Access& a, const AnyVal& inner) {
  return at_end(inner, taken(a, {0, 0, 0}), a.axis, end, scale(a.stencil, a.axis));
}

AnyVal Tracer::difference_by(const OddFactors& factors, const Access& a) {
  const Taken t = taken(a, {0, 0, 0});
  const AnyVal above = t.get(1), pair = fma(factors.back, t.get(-1), above),
               value = weight_at(t.taps, 1) < 0 ? -pair : pair;
  return rounded_product(factors.scale, value);
}

Tracer::Change Tracer::own_difference_by(const OddFactors& factors, const Target& target, const Term& term) {
  const Taken t = taken(target, term);
  const AnyVal above = t.get(1), pair = fma(factors.back, t.get(-1), above);
  return {weight_at(t.taps, 1) < 0 ? -pair : pair, factors.scale};
}

AnyVal Tracer::access(const Access& a, const Offset& at) {
  switch (a.kind) {
    case Access::parameter: return scalars_.parameters[size_t(a.number)];
    case Access::parameter_tangent: return scalars_.parameter_tangents[size_t(a.number)];
    case Access::carried:
    case Access::cotangent: return datum({a.kind, 0, a.number, 0, at});
    default: break;
  }
  if (a.stencil == Stencil::point) return datum({a.kind, a.field_index, a.component, a.level, at});
  return difference(a, at, true);
}

AnyVal Tracer::value(const Value& v, const Offset& at) {
  auto& lowering = at_[at];
  if (!lowering)
    lowering = std::make_unique<autodiff::Lowering>(*d_.plan->graph, type_, [this, at](uint32_t leaf) {
      if (at == Offset{0, 0, 0})
        if (const auto known = known_.find(leaf); known != known_.end()) return known->second;
      return access(d_.plan->accesses[leaf], at);
    });
  return (*lowering)(v);
}

bool Tracer::starts_at_zero(const Target& target) const {
  for (const Term& t : target.terms)
    if (t.axis == 2) return true;
  return false;
}

bool Tracer::reaches(const Target& target, int to) const {
  for (const Term& t : target.terms) {
    if (t.axis != 2) continue;
    const AxisOperator& op = d_.of(target.field_index, target.component, t.stencil, 2);
    if (weight_at(op.taps_t, -to) != 0) return true;
    for (const Row& r : op.rows_t)
      if (weight_at(r.taps, -to) != 0) return true;
  }
  return false;
}

AnyVal Tracer::plane_weight(const Target& target, const Term& term, int k, int row_offset) {
  const AxisOperator& op = d_.of(target.field_index, target.component, term.stencil, 2);
  const double regular = weight_at(op.taps_t, k);
  const AnyVal scale = scalars_.scales[size_t(d_.scale_index(term.stencil, 2))];
  bool special = false;
  for (const Row& r : op.rows_t) special |= edges_ && weight_at(r.taps, k) != regular;
  if (!special) {
    if (regular == 0) return {};
    return regular == 1 ? scale : rounded_product(scale, AnyVal::number(type_, regular));
  }
  AnyVal weight = AnyVal::number(type_, regular);
  for (const Row& r : op.rows_t)
    if (const double w = weight_at(r.taps, k); w != regular)
      weight = select(row_condition(r, 2, row_offset), AnyVal::number(type_, w), weight);
  return rounded_product(scale, weight);
}

bool Tracer::extends(const Term& term) const {
  if (d_.pointwise_adjoint) return true;
  for (uint32_t leaf : autodiff::leaves_of(std::span(&term.g, 1))) {
    const Access& a = d_.plan->accesses[leaf];
    if (a.stencil != Stencil::point && a.axis == term.axis) return false;
  }
  return true;
}

Tracer::Taken Tracer::taken(const Target& target, const Term& term) {
  const AxisOperator& op = d_.of(target.field_index, target.component, term.stencil, term.axis);
  return {op.taps_t,
          op.rows_t,
          [this, &term](int k) {
            Offset at{0, 0, 0};
            at[size_t(term.axis)] = k;
            return value(term.g, at);
          },
          {},
          extends(term)};
}

AnyVal Tracer::own_difference(const Target& target, const Term& term, bool edges) {
  const Taken t = taken(target, term);
  const AnyVal inner = combine(t.taps, t.get);
  return edges ? with_edges(inner, t, term.axis, {0, 0, 0}) : inner;
}

AnyVal Tracer::own_difference_at(const End& end, const Target& target, const Term& term,
                                 const AnyVal& inner) {
  return at_end(inner, taken(target, term), term.axis, end, {});
}

AnyVal Tracer::add_own_plane(const Target& target, const AnyVal& before, const AnyVal& point,
                             const std::function<Change(const Term&)>& difference) {
  AnyVal sum = before;
  if (target.point) sum = add(sum, !point.empty() ? point : value(*target.point));
  for (const Term& t : target.terms) {
    if (t.axis == 2 && extends(t)) continue;
    const Change change = difference ? difference(t) : Change{own_difference(target, t, true), {}};
    sum = accumulate(sum, change.scale.empty() ? scale(t.stencil, t.axis) : change.scale, change.value);
  }
  return add_to_plane(target, 0, sum);
}

AnyVal Tracer::add_to_plane(const Target& target, int to, const AnyVal& before) {
  AnyVal sum = before;
  for (const Term& t : target.terms) {
    if (t.axis != 2 || !extends(t)) continue;
    const AnyVal weight = plane_weight(target, t, -to, to);
    if (!weight.empty()) sum = accumulate(sum, weight, value(t.g));
  }
  return sum;
}

AnyVal Tracer::gradient(const Target& target, const std::function<Change(const Term&)>& difference) {
  const int reach = d_.reach[2];
  // From 0 where z takes part: planes outside the grid then change no bit by their weight of 0. Terms whose g is
  // nothing out there take part with the own plane, where rows at the edges leave it out.
  AnyVal sum = starts_at_zero(target) ? AnyVal::number(type_, 0) : AnyVal();
  const auto planes = [&](int from, int to) {
    for (int k = from; k <= to; ++k)
      for (const Term& t : target.terms) {
        if (t.axis != 2 || !extends(t)) continue;
        const AnyVal weight = plane_weight(target, t, k, 0);
        if (!weight.empty()) sum = accumulate(sum, weight, value(t.g, {0, 0, k}));
      }
  };
  planes(-reach, -1);
  sum = add_own_plane(target, sum, {}, difference);
  planes(1, reach);
  return sum.empty() ? AnyVal::number(type_, 0) : sum;
}

}  // namespace lockstep::pde
