#include "solve/model/host_function.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/error.hpp"

namespace lockstep::solve {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Runs a function of the user, whose faults become errors with its name.
template <class F>
void call(const std::string& where, F function) {
  try {
    function();
  } catch (const Error&) { throw; } catch (const std::exception& e) {
    throw InputError(fmt::format("the function threw: {}", e.what()), where, "numbers");
  }
}

/// Derivatives of all components of f at 0: central differences of steps that halve, extrapolated until the error that
/// the tableau shows grows (Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", 1982).
template <class F>
std::vector<double> ridders(F f, double first_step, size_t size) {
  constexpr int kLevels = 10;
  constexpr double kWorse = 2;  // the error of a level, over the best one, that ends the search
  std::vector<double> best(size, kNone), error(size, std::numeric_limits<double>::infinity());
  std::vector<std::vector<double>> last, row;
  double step = first_step;
  for (int level = 0; level < kLevels; ++level, step /= 2) {
    const std::vector<double> ahead = f(step), behind = f(-step);
    row.assign(1, {});
    for (size_t k = 0; k < size; ++k) row[0].push_back((ahead[k] - behind[k]) / (2 * step));
    bool better = level == 0;
    double factor = 4;
    for (size_t j = 1; j <= last.size(); ++j, factor *= 4) {
      row.emplace_back(size);
      for (size_t k = 0; k < size; ++k) {
        row[j][k] = (row[j - 1][k] * factor - last[j - 1][k]) / (factor - 1);
        const double e = std::max(std::abs(row[j][k] - row[j - 1][k]), std::abs(row[j][k] - last[j - 1][k]));
        if (e < error[k]) error[k] = e, best[k] = row[j][k], better = true;
      }
    }
    for (size_t k = 0; k < size && !better && !last.empty(); ++k)
      better = !(std::abs(row.back()[k] - last.back()[k]) >= kWorse * error[k]);
    if (!better) break;
    last = row;
  }
  return best;
}

}  // namespace

std::vector<double> moved(const TracedManifold& manifold, std::span<const double> x,
                          std::span<const double> delta) {
  std::vector<double> at(x.begin(), x.end());
  at.insert(at.end(), delta.begin(), delta.end());
  return manifold.numbers.plus(at);
}

HostFunction::HostFunction(const ExpressionKey& key) : host_(key.host), slots_(key.slots), rows_(key.rows) {
  for (const auto& slot : slots_) columns_ += slot->manifold.tangent, numbers_ += slot->manifold.ambient;
}

std::string HostFunction::where(const HostArguments& at) const {
  return fmt::format("solve term {}, instance {}", host_->name, at.instance);
}

void HostFunction::residuals(const HostArguments& at, std::span<double> out) const {
  std::fill(out.begin(), out.end(), kNone);
  call(where(at), [&] { host_->residual({at.blocks, at.data}, out); });
}

void HostFunction::given_jacobian(const HostArguments& at, std::span<double> out) const {
  std::vector<double> ambient(size_t(rows_) * size_t(numbers_), kNone);
  call(where(at), [&] { host_->jacobian({at.blocks, at.data}, ambient); });
  std::fill(out.begin(), out.end(), 0.0);
  size_t number = 0, column = 0;
  for (size_t s = 0; s < slots_.size(); ++s) {
    const size_t own = size_t(slots_[s]->manifold.ambient), tangent = size_t(slots_[s]->manifold.tangent);
    std::vector<double> x(at.blocks[s].begin(), at.blocks[s].end());
    x.resize(own + tangent, 0);
    const std::vector<double> moves =
        slots_[s]->euclidean ? std::vector<double>() : slots_[s]->numbers.slopes(x);
    for (size_t r = 0; r < size_t(rows_); ++r) {
      const double* from = ambient.data() + r * size_t(numbers_) + number;
      double* to = out.data() + r * size_t(columns_) + column;
      for (size_t c = 0; c < tangent; ++c) {
        if (moves.empty())
          to[c] = from[c];
        else
          for (size_t k = 0; k < own; ++k) to[c] += from[k] * moves[k * tangent + c];
      }
    }
    number += own, column += tangent;
  }
}

std::vector<double> HostFunction::slopes(const HostArguments& at, size_t slot, size_t coordinate) const {
  const TracedManifold& manifold = *slots_[slot];
  std::vector<std::span<const double>> blocks(at.blocks.begin(), at.blocks.end());
  std::vector<double> there, values(static_cast<size_t>(rows_)),
      delta(size_t(manifold.manifold.tangent), 0.0);
  const auto along = [&](double step) {
    delta[coordinate] = step;
    there = moved(manifold, at.blocks[slot], delta);
    blocks[slot] = there;
    residuals({blocks, at.data, at.instance}, values);
    return values;
  };
  // A number's own size is the only scale that is known; where it is rounding of 0, a step of it is too small to be seen.
  const double size = manifold.euclidean ? std::abs(at.blocks[slot][coordinate]) : 1;
  constexpr double kShare = 0.05, kSeen = 1e-7, kGrowth = 1e4, kLeast = 1e-280;
  double step = kShare * (size > 0 ? std::max(size, kLeast) : 1);
  std::vector<double> ahead, behind;
  bool seen = false;
  for (; step < kShare; step = std::min(kGrowth * step, kShare)) {
    ahead = along(step), behind = along(-step);
    double change = 0, largest = 0;
    for (size_t r = 0; r < ahead.size(); ++r) {
      change = std::max(change, std::abs(ahead[r] - behind[r]));
      largest = std::max(largest, std::max(std::abs(ahead[r]), std::abs(behind[r])));
    }
    seen = !(change <= kSeen * largest);
    if (seen) break;
  }
  return ridders(
      [&](double at_step) {
        return !seen || std::abs(at_step) != step ? along(at_step) : at_step > 0 ? ahead : behind;
      },
      step, size_t(rows_));
}

void HostFunction::differences(const HostArguments& at, std::span<double> out) const {
  size_t column = 0;
  for (size_t s = 0; s < slots_.size(); ++s)
    for (int c = 0; c < slots_[s]->manifold.tangent; ++c, ++column) {
      const std::vector<double> own = slopes(at, s, size_t(c));
      for (size_t r = 0; r < own.size(); ++r) out[r * size_t(columns_) + column] = own[r];
    }
}

void HostFunction::jacobian(const HostArguments& at, std::span<double> out) const {
  if (host_->jacobian)
    given_jacobian(at, out);
  else
    differences(at, out);
}

void HostFunction::check(const HostArguments& at) const {
  std::vector<double> values(static_cast<size_t>(rows_));
  residuals(at, values);
  for (size_t r = 0; r < values.size(); ++r)
    if (!std::isfinite(values[r]))
      throw InputError(fmt::format("residual {} is {}", r, values[r]), where(at),
                       "finite numbers, one for each residual, at the values that the blocks have");
  if (!host_->jacobian) return;
  constexpr double kTolerance = 1e-5;
  std::vector<double> given(values.size() * size_t(columns_)), found(given.size());
  given_jacobian(at, given), differences(at, found);
  for (size_t r = 0; r < values.size(); ++r) {
    const double* own = given.data() + r * size_t(columns_);
    double scale = 0;
    for (int c = 0; c < columns_; ++c)
      scale = std::max(scale, std::abs(found[r * size_t(columns_) + size_t(c)]));
    for (int c = 0; c < columns_; ++c)
      if (const double d = found[r * size_t(columns_) + size_t(c)];
          !(std::abs(own[c] - d) <= kTolerance * scale))
        throw InputError(
            fmt::format("the Jacobian has {:.6g} in row {}, tangent coordinate {} of all slots, where "
                        "differences give {:.6g}",
                        own[c], r, c, d),
            where(at), "the residuals' derivatives");
  }
}

}  // namespace lockstep::solve
