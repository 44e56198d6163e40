#include "pde/language/stencil.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {

/// Weights of central first differences for offsets 1, 2, …, relative to the first.
std::vector<double> first_weights(int order) {
  switch (order) {
    case 2: return {1.0 / 2};
    case 4: return {2.0 / 3, -1.0 / 12};
    case 6: return {3.0 / 4, -3.0 / 20, 1.0 / 60};
    case 8: return {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
    default: throw InputError(fmt::format("order {}", order), "pde mesh", "2, 4, 6 or 8");
  }
}
/// Weights of central second differences for offsets 0, 1, 2, ….
std::vector<double> second_weights(int order) {
  switch (order) {
    case 2: return {-2, 1};
    case 4: return {-5.0 / 2, 4.0 / 3, -1.0 / 12};
    case 6: return {-49.0 / 18, 3.0 / 2, -3.0 / 20, 1.0 / 90};
    case 8: return {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
    default: throw InputError(fmt::format("order {}", order), "pde mesh", "2, 4, 6 or 8");
  }
}

std::vector<Tap> interior(Stencil kind, int order) {
  switch (kind) {
    case Stencil::point: return {{0, 1}};
    case Stencil::forward: return {{0, -1}, {1, 1}};
    case Stencil::backward: return {{-1, -1}, {0, 1}};
    case Stencil::first: {
      const std::vector<double> w = first_weights(order);
      std::vector<Tap> taps;
      for (int k = int(w.size()); k > 0; --k) taps.push_back({-k, -w[size_t(k - 1)] / w[0]});
      for (int k = 1; k <= int(w.size()); ++k) taps.push_back({k, w[size_t(k - 1)] / w[0]});
      return taps;
    }
    case Stencil::second: {
      const std::vector<double> w = second_weights(order);
      std::vector<Tap> taps;
      for (int k = int(w.size()) - 1; k > 0; --k) taps.push_back({-k, w[size_t(k)]});
      for (int k = 0; k < int(w.size()); ++k) taps.push_back({k, w[size_t(k)]});
      return taps;
    }
  }
  return {};
}

/// A cell or ghost as a combination of cells.
struct Combination {
  std::map<int64_t, double> cells;
  double constant = 0;
  std::array<double, 2> of_side{};
  void add(const Combination& other, double factor) {
    for (const auto& [cell, weight] : other.cells) cells[cell] += factor * weight;
    constant += factor * other.constant;
    for (size_t end = 0; end < 2; ++end) of_side[end] += factor * other.of_side[end];
  }
  void add_value(const Side& side, bool high, double factor) {
    if (side.parameter.empty())
      constant += factor * side.value;
    else
      of_side[high] += factor;
  }
};

class Ghosts {
 public:
  Ghosts(const Side& low, const Side& high, int64_t n) : sides_{low, high}, n_(n) {}

  Combination at(int64_t m, int depth = 0) const {
    if (m >= 0 && m < n_) return {{{m, 1.0}}, 0, {}};
    if (depth > 64) throw too_small();
    const bool high = m >= n_;
    const Side& side = sides_[high];
    if (side.rule == Rule::periodic) return at(((m % n_) + n_) % n_, depth + 1);
    const int64_t d = high ? m - n_ + 1 : -m;  // 1 = the first ghost
    const auto inward = [&](int64_t k) { return high ? n_ - 1 - k : k; };
    Combination c;
    switch (side.rule) {
      case Rule::clamp:
      case Rule::reflect_even: return at(inward(d - 1), depth + 1);
      case Rule::reflect_odd: c.add(at(inward(d - 1), depth + 1), -1); return c;
      case Rule::dirichlet_face:
        c.add(at(inward(d - 1), depth + 1), -1);
        c.add_value(side, high, 2);
        return c;
      case Rule::ghost: c.add_value(side, high, 1); return c;
      case Rule::node_mirror: return at(inward(d), depth + 1);
      case Rule::one_sided1:
        if (n_ < 2) throw too_small();
        c.add(at(inward(0)), double(d + 1));
        c.add(at(inward(1)), double(-d));
        return c;
      case Rule::one_sided2: {
        if (n_ < 3) throw too_small();
        const double x = double(-d);
        c.add(at(inward(0)), (x - 1) * (x - 2) / 2);
        c.add(at(inward(1)), -x * (x - 2));
        c.add(at(inward(2)), x * (x - 1) / 2);
        return c;
      }
      default: throw InternalError("boundary rule not resolved", "pde ghosts", "a rule of one component");
    }
  }

 private:
  InputError too_small() const {
    return InputError(fmt::format("{} cells", n_), "pde grid", "more cells for this boundary");
  }
  Side sides_[2];
  int64_t n_;
};

}  // namespace

double operator_scale(Stencil kind, int order, double h) {
  switch (kind) {
    case Stencil::point: return 1;
    case Stencil::first: return first_weights(order)[0] / h;
    case Stencil::second: return 1 / (h * h);
    default: return 1 / h;
  }
}

Side resolve_side(const Side& side, int axis, int component, bool vector) {
  if (side.rule == Rule::free_slip)
    return {vector && component == axis ? Rule::reflect_odd : Rule::reflect_even};
  if (side.rule == Rule::no_slip) return {vector ? Rule::reflect_odd : Rule::reflect_even};
  return side;
}

std::vector<double> dense_row(Stencil kind, int order, const Side& low, const Side& high, int64_t cells,
                              int64_t i, double* constant, std::array<double, 2>* of_side) {
  const Ghosts ghosts(low, high, cells);
  Combination c;
  // Pairs of taps together: where both meet in one cell, opposite weights cancel exactly.
  const std::vector<Tap> taps = interior(kind, order);
  for (size_t k = 0; k < (taps.size() + 1) / 2; ++k) {
    const size_t other = taps.size() - 1 - k;
    c.add(ghosts.at(i + taps[k].offset), taps[k].weight);
    if (other != k) c.add(ghosts.at(i + taps[other].offset), taps[other].weight);
  }
  std::vector<double> row(size_t(cells), 0.0);
  for (const auto& [cell, weight] : c.cells) row[size_t(cell)] = weight;
  if (constant) *constant = c.constant;
  if (of_side) *of_side = c.of_side;
  return row;
}

AxisOperator make_operator(Stencil kind, int order, const Side& low, const Side& high, int64_t cells,
                           const char* axis_name, bool wrap) {
  AxisOperator op;
  op.taps = interior(kind, order);
  for (auto t = op.taps.rbegin(); t != op.taps.rend(); ++t) op.taps_t.push_back({-t->offset, t->weight});
  int radius = 0;
  for (const Tap& t : op.taps) radius = std::max(radius, std::abs(t.offset));
  op.reach = radius;
  if (kind == Stencil::point) return op;
  if (wrap && low.rule == Rule::periodic) {
    op.periodic = true;
    return op;
  }
  // Beyond this size the two ends do not meet, and their rows are the same for every longer axis.
  const int64_t n = std::min<int64_t>(cells, 4 * radius + 6);
  const bool exact = n == cells;
  std::vector<std::vector<double>> s;
  std::vector<double> constants(size_t(n), 0.0);
  std::vector<std::array<double, 2>> of_sides(size_t(n), std::array<double, 2>{});
  try {
    for (int64_t i = 0; i < n; ++i)
      s.push_back(dense_row(kind, order, low, high, n, i, &constants[size_t(i)], &of_sides[size_t(i)]));
  } catch (const InputError&) {
    throw InputError(fmt::format("{} cells along {}", cells, axis_name), "pde grid",
                     fmt::format("more cells for this boundary at order {}", order));
  }
  const auto weight_of = [](const std::vector<Tap>& taps, int64_t offset) {
    for (const Tap& t : taps)
      if (t.offset == offset) return t.weight;
    return 0.0;
  };
  const auto find_rows = [&](bool transposed, std::vector<Row>& rows) {
    const std::vector<Tap>& taps = transposed ? op.taps_t : op.taps;
    for (int64_t i = 0; i < n; ++i) {
      Row row;
      bool regular = true;
      for (int64_t k = 0; k < n; ++k) {
        const double w = transposed ? s[size_t(k)][size_t(i)] : s[size_t(i)][size_t(k)];
        regular &= w == weight_of(taps, k - i);
        if (w != 0) row.taps.push_back({int(k - i), w});
      }
      for (const Tap& t : taps) regular &= i + t.offset >= 0 && i + t.offset < n;
      if (!transposed) {
        row.constant = constants[size_t(i)];
        row.of_side = of_sides[size_t(i)];
      }
      if (regular && !row.affine()) continue;
      row.high = !exact && i >= n / 2;
      row.at = int(row.high ? n - 1 - i : i);
      for (const Tap& t : row.taps) op.reach = std::max(op.reach, std::abs(t.offset));
      rows.push_back(std::move(row));
    }
  };
  find_rows(false, op.rows);
  find_rows(true, op.rows_t);
  return op;
}

}  // namespace lockstep::pde
