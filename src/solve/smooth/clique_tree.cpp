#include "solve/smooth/clique_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/linear/cholesky/dense_kernels.hpp"

namespace lockstep::solve {
namespace {

constexpr int64_t kParallelFront = 384;  // rows of a front from which threads pay
/// Pivots below this share of what was summed for them are rounding.
constexpr double kLeastPivot = 64 * std::numeric_limits<double>::epsilon();

/// Number (row, column) of a front, of either triangle.
double& front_number(Clique& clique, int64_t row, int64_t column) {
  const int64_t r = std::max(row, column), c = std::min(row, column), n = clique.size, p = clique.pivot_size;
  return c < p ? clique.panel[size_t(c * n + r)] : clique.trailing[size_t((c - p) * (n - p) + r - p)];
}

}  // namespace

void CliqueTree::set_variable(int32_t variable, int32_t width, double unit) {
  const size_t v = size_t(variable);
  if (v >= width_.size()) {
    width_.resize(v + 1), clique_of_.resize(v + 1, -1), unit_.resize(v + 1), step_.resize(v + 1);
    position_.resize(v + 1), local_.resize(v + 1), mark_.resize(v + 1), changed_.resize(v + 1);
    held_.resize(v + 1);
  }
  width_[v] = width, unit_[v] = unit, clique_of_[v] = -1, changed_[v] = 0;
  step_[v].assign(size_t(width), 0);
  held_[v].clear();
}

CliqueTree::Affected CliqueTree::affected(std::span<const int32_t> pivots,
                                          std::span<const int32_t> anywhere) {
  Affected out;
  std::vector<uint8_t> seen(cliques_.size(), 0);
  const auto climb = [&](int32_t c) {
    for (; c >= 0 && !seen[size_t(c)]; c = cliques_[size_t(c)].parent)
      seen[size_t(c)] = 1, out.cliques.push_back(c);
  };
  for (const int32_t v : pivots) climb(clique_of_[size_t(v)]);
  std::vector<int32_t> stack;
  for (const int32_t v : anywhere) {
    if (clique_of_[size_t(v)] < 0) continue;
    climb(clique_of_[size_t(v)]);
    stack.assign(1, clique_of_[size_t(v)]);
    while (!stack.empty()) {
      const Clique& clique = cliques_[size_t(stack.back())];
      stack.pop_back();
      for (const int32_t c : clique.children)
        if (std::ranges::find(cliques_[size_t(c)].rows, v) != cliques_[size_t(c)].rows.end())
          climb(c), stack.push_back(c);
    }
  }
  std::ranges::sort(out.cliques);
  for (const int32_t c : out.cliques) {
    const Clique& clique = cliques_[size_t(c)];
    out.variables.insert(out.variables.end(), clique.pivots.begin(), clique.pivots.end());
    for (const int32_t child : clique.children)
      if (!seen[size_t(child)]) out.orphans.push_back(child);
  }
  return out;
}

CliqueTree::Replacement CliqueTree::eliminate(std::span<const int32_t> variables,
                                              std::span<const int32_t> groups,
                                              std::span<const QuadraticView> quadratics,
                                              std::span<const int32_t> orphans) {
  std::vector<int32_t> weights;
  for (size_t k = 0; k < variables.size(); ++k) {
    local_[size_t(variables[k])] = int32_t(k);
    weights.push_back(width_[size_t(variables[k])]);
  }
  Elements elements;
  const auto add = [&](std::span<const int32_t> clique) {
    for (const int32_t v : clique) elements.variables.push_back(local_[size_t(v)]);
    elements.first.push_back(int64_t(elements.variables.size()));
  };
  for (const QuadraticView& q : quadratics) add(q.variables);
  for (const int32_t o : orphans) add(cliques_[size_t(o)].rows);
  std::vector<EliminationFront> fronts = elimination_fronts(weights, groups, elements);
  Replacement out;
  out.parts.resize(fronts.size());
  for (size_t f = 0; f < fronts.size() && !out.undetermined; ++f) {
    EliminationFront& front = fronts[f];
    out.parts[f].parent = front.parent, out.parts[f].leaves = groups[size_t(front.pivots[0])] == 0;
    for (std::vector<int32_t>* list : {&front.pivots, &front.rows})
      for (int32_t& v : *list) v = variables[size_t(v)];
    factor(out, f, front, quadratics, orphans);
  }
  return out;
}

void CliqueTree::factor(Replacement& replacement, size_t part, const EliminationFront& front,
                        std::span<const QuadraticView> quadratics, std::span<const int32_t> orphans) {
  Replacement::Part& own = replacement.parts[part];
  Clique& clique = own.clique;
  clique.pivots = front.pivots, clique.rows = front.rows;
  int64_t size = 0;
  for (const int32_t v : clique.pivots) position_[size_t(v)] = size, size += width_[size_t(v)];
  clique.pivot_size = size;
  for (const int32_t v : clique.rows) position_[size_t(v)] = size, size += width_[size_t(v)];
  clique.size = size + 1;
  const int64_t below = clique.size - clique.pivot_size;
  clique.panel.assign(size_t(clique.size * clique.pivot_size), 0);
  clique.trailing.assign(size_t(below * below), 0);
  clique.scale.assign(size_t(clique.size), 0);
  for (const int32_t e : front.elements)
    if (size_t(e) < quadratics.size()) {
      assemble(clique, quadratics[size_t(e)]);
    } else {
      own.orphans.push_back(orphans[size_t(e) - quadratics.size()]);
      assemble(clique, cliques_[size_t(own.orphans.back())].left());
    }
  for (const int32_t c : front.children) {
    own.inner.push_back(c);
    assemble(clique, replacement.parts[size_t(c)].clique.left());
  }
  hold_pivots(clique);
  int64_t done = partial_cholesky(clique.panel.data(), clique.size, clique.pivot_size, clique.trailing.data(),
                                  below, clique.size >= kParallelFront);
  for (int64_t k = 0; k < done; ++k) {
    const double pivot = clique.panel[size_t(k * clique.size + k)];
    if (pivot * pivot < kLeastPivot * clique.scale[size_t(k)]) done = k;
  }
  if (done == clique.pivot_size) return;
  for (const int32_t v : clique.pivots)
    if (position_[size_t(v)] <= done) replacement.undetermined = v;
}

void CliqueTree::assemble(Clique& clique, const QuadraticView& q) {
  const int64_t n = clique.size, p = clique.pivot_size, below = n - p;
  const auto column = [&](int64_t c) {  // such that row r is at [r]
    return c < p ? clique.panel.data() + c * n : clique.trailing.data() + (c - p) * below - p;
  };
  int64_t from = 0;
  for (size_t j = 0; j < q.variables.size(); ++j) {
    const int64_t at = position_[size_t(q.variables[j])], width = width_[size_t(q.variables[j])];
    for (int64_t c = 0; c < width; ++c) {
      double* const to = column(at + c);
      const double* const source = q.gram + (from + c) * q.size;
      for (int64_t r = c; r < width; ++r) to[at + r] += source[from + r];
      clique.scale[size_t(at + c)] += q.scale ? q.scale[from + c] : source[from + c];
      int64_t row = from + width;
      for (size_t i = j + 1; i < q.variables.size(); ++i) {
        const int64_t other = position_[size_t(q.variables[i])], high = width_[size_t(q.variables[i])];
        if (other > at)
          for (int64_t r = 0; r < high; ++r) to[other + r] += source[row + r];
        else
          for (int64_t r = 0; r < high; ++r) column(other + r)[at + c] += source[row + r];
        row += high;
      }
      to[n - 1] += source[q.size - 1];
    }
    from += width;
  }
  clique.trailing.back() += q.gram[q.size * q.size - 1];
}

/// With row [h c g] of a coordinate c whose step is s, the others' right-hand sides grow by s h and the constant by s g +
/// 1/2 s^2 c; 1/2 (d - s)^2 takes the coordinate's place, which is 0 at its minimum.
void CliqueTree::hold_pivots(Clique& clique) const {
  const int64_t last = clique.size - 1;
  for (const int32_t v : clique.pivots)
    for (const HeldStep& h : held_[size_t(v)]) {
      Clique::HeldRow& own = clique.held.emplace_back(v, h.coordinate);
      for (int64_t k = 0; k <= last; ++k)
        own.row.push_back(front_number(clique, position_[size_t(v)] + h.coordinate, k));
    }
  double& corner = clique.trailing.back();
  for (const int32_t v : clique.pivots)
    for (const auto& [coordinate, step] : held_[size_t(v)]) {
      const int64_t at = position_[size_t(v)] + coordinate;
      corner += step * (2 * front_number(clique, last, at) + step * front_number(clique, at, at));
      for (int64_t k = 0; k < last; ++k)
        if (k != at) {
          double& number = front_number(clique, k, at);
          front_number(clique, last, k) += step * number;
          number = 0;
        }
      front_number(clique, at, at) = clique.scale[size_t(at)] = 1;
      front_number(clique, last, at) = -step;
      corner += step * step;
    }
}

CliqueTree::Slope CliqueTree::held_slope(int32_t variable, int32_t coordinate) const {
  const Clique& clique = cliques_[size_t(clique_of_[size_t(variable)])];
  const auto own = std::ranges::find_if(clique.held, [&](const Clique::HeldRow& row) {
    return row.variable == variable && row.coordinate == coordinate;
  });
  Slope out;
  size_t at = 0;
  const auto add = [&](double term) { out.value += term, out.rounding += std::abs(term); };
  for (const std::vector<int32_t>* list : {&clique.pivots, &clique.rows})
    for (const int32_t v : *list)
      for (const double step : step_[size_t(v)]) add(own->row[at++] * step);
  add(own->row[at]);
  out.rounding *= double(own->row.size()) * std::numeric_limits<double>::epsilon();
  return out;
}

void CliqueTree::replace(const Affected& affected, Replacement&& replacement) {
  for (const int32_t c : affected.cliques) {
    cliques_[size_t(c)] = {};
    free_.push_back(c);
  }
  std::vector<int32_t> number(replacement.parts.size(), -1);
  for (size_t k = 0; k < replacement.parts.size(); ++k) {
    Replacement::Part& part = replacement.parts[k];
    if (part.leaves) continue;
    if (free_.empty()) {
      number[k] = int32_t(cliques_.size());
      cliques_.emplace_back();
    } else {
      number[k] = free_.back();
      free_.pop_back();
    }
    Clique& clique = cliques_[size_t(number[k])];
    clique = std::move(part.clique);
    fresh_.push_back(number[k]);
    for (const int32_t v : clique.pivots) clique_of_[size_t(v)] = number[k];
    for (const int32_t c : part.inner)
      if (number[size_t(c)] >= 0) clique.children.push_back(number[size_t(c)]);
    clique.children.insert(clique.children.end(), part.orphans.begin(), part.orphans.end());
    for (const int32_t c : clique.children) cliques_[size_t(c)].parent = number[k];
  }
}

void CliqueTree::substitute(double change, std::vector<int32_t>& moved) {
  std::vector<uint8_t> fresh(cliques_.size(), 0);
  for (const int32_t c : fresh_) fresh[size_t(c)] = 1;
  std::vector<int32_t> stack, touched;
  for (const int32_t c : fresh_)
    if (cliques_[size_t(c)].parent < 0) stack.push_back(c);
  while (!stack.empty()) {
    const int32_t c = stack.back();
    stack.pop_back();
    const Clique& clique = cliques_[size_t(c)];
    if (!fresh[size_t(c)] &&
        std::ranges::none_of(clique.rows, [&](int32_t v) { return changed_[size_t(v)] != 0; }))
      continue;
    if (solve(clique, fresh[size_t(c)] != 0, change, moved))
      touched.insert(touched.end(), clique.pivots.begin(), clique.pivots.end());
    // Pivots that stay, such as held ones, do not hide rows that changed from what is below.
    stack.insert(stack.end(), clique.children.begin(), clique.children.end());
  }
  for (const int32_t v : touched) changed_[size_t(v)] = 0;
  fresh_.clear();
}

/// Steps of the pivots from those of the rows; false, and the old ones stay, where none changes enough.
bool CliqueTree::solve(const Clique& clique, bool fresh, double change, std::vector<int32_t>& moved) {
  thread_local std::vector<double> x;
  x.assign(size_t(clique.pivot_size), 0);
  for (const int32_t v : clique.rows) x.insert(x.end(), step_[size_t(v)].begin(), step_[size_t(v)].end());
  x.push_back(1);  // of the right-hand side's row
  backward_substitute(clique.panel.data(), clique.size, clique.pivot_size, x.data());
  bool any = fresh;
  size_t at = 0;
  for (const int32_t v : clique.pivots)
    for (const double old : step_[size_t(v)]) any |= std::abs(x[at++] - old) > change * unit_[size_t(v)];
  if (!any) return false;
  at = 0;
  for (const int32_t v : clique.pivots) {
    std::vector<double>& own = step_[size_t(v)];
    std::copy_n(x.begin() + int64_t(at), own.size(), own.begin());
    at += own.size();
    changed_[size_t(v)] = 1;
    moved.push_back(v);
  }
  return true;
}

// Column k of L^-1 is not zero on the path from its clique to the root only.
std::vector<double> CliqueTree::covariance(std::span<const int32_t> variables) {
  std::vector<uint8_t> seen(cliques_.size(), 0);
  std::vector<std::vector<int32_t>> paths;  // up to a clique that an earlier one has
  for (const int32_t v : variables) {
    std::vector<int32_t>& path = paths.emplace_back();
    for (int32_t c = clique_of_[size_t(v)]; c >= 0 && !seen[size_t(c)]; c = cliques_[size_t(c)].parent)
      seen[size_t(c)] = 1, path.push_back(c);
  }
  std::vector<int32_t> order;  // children before parents
  for (auto path = paths.rbegin(); path != paths.rend(); ++path)
    order.insert(order.end(), path->begin(), path->end());
  int64_t height = 0, columns = 0;
  for (const int32_t c : order)
    for (const int32_t v : cliques_[size_t(c)].pivots)
      position_[size_t(v)] = height, height += width_[size_t(v)];
  for (const int32_t v : variables) columns += width_[size_t(v)];
  std::vector<double> all(size_t(height * columns), 0), x;
  double* column = all.data();
  for (const int32_t v : variables)
    for (int32_t k = 0; k < width_[size_t(v)]; ++k, column += height) {
      if (std::ranges::any_of(cliques_[size_t(clique_of_[size_t(v)])].held,
                              [&](const Clique::HeldRow& h) { return h.variable == v && h.coordinate == k; }))
        continue;
      column[position_[size_t(v)] + k] = 1;
      for (const int32_t c : order) {
        const Clique& clique = cliques_[size_t(c)];
        x.clear();
        const auto each = [&](auto f) {
          for (const std::vector<int32_t>* list : {&clique.pivots, &clique.rows})
            for (const int32_t u : *list)
              for (int32_t i = 0; i < width_[size_t(u)]; ++i) f(column[position_[size_t(u)] + i]);
        };
        each([&](double number) { x.push_back(number); });
        if (std::all_of(x.begin(), x.begin() + clique.pivot_size, [](double number) { return number == 0; }))
          continue;
        x.push_back(0);
        forward_substitute(clique.panel.data(), clique.size, clique.pivot_size, x.data());
        size_t at = 0;
        each([&](double& number) { number = x[at++]; });
      }
    }
  std::vector<double> out(size_t(columns * columns));
  for (int64_t a = 0; a < columns; ++a)
    for (int64_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (int64_t k = 0; k < height; ++k) sum += all[size_t(a * height + k)] * all[size_t(b * height + k)];
      out[size_t(a * columns + b)] = out[size_t(b * columns + a)] = sum;
    }
  return out;
}

int64_t CliqueTree::bytes() const {
  int64_t numbers = 0, indices = 0, held = 0;
  for (const Clique& c : cliques_) {
    numbers += int64_t(c.panel.capacity() + c.trailing.capacity());
    for (const Clique::HeldRow& h : c.held) numbers += int64_t(h.row.capacity());
    indices += int64_t(c.pivots.capacity() + c.rows.capacity() + c.children.capacity());
  }
  for (const std::vector<double>& s : step_) numbers += int64_t(s.capacity());
  for (const std::vector<HeldStep>& h : held_) held += int64_t(h.capacity() * sizeof(HeldStep));
  return 8 * numbers + 4 * indices + held + int64_t(cliques_.capacity() * sizeof(Clique));
}

}  // namespace lockstep::solve
