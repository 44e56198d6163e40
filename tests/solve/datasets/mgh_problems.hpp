// The least-squares problems of Moré, Garbow and Hillstrom, "Testing Unconstrained Optimization Software"
// (ACM TOMS 7, 1981), by their numbers there: residuals, standard start and known minima of the sum of
// squares.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "lockstep/autodiff.hpp"

namespace lockstep::solve::test {

using autodiff::Value;

struct MghProblem {
  int number;
  std::string name;
  std::vector<double> start;
  std::function<std::vector<Value>(std::span<const Value> x)> residuals;
  std::vector<double> minima;  // of the sum of squares
};

inline std::vector<double> repeated(int n, double value) { return std::vector<double>(size_t(n), value); }
inline Value total(std::span<const Value> x) { return autodiff::sum(x); }

/// The list, by the kinds of problems.
class MghProblems {
 public:
  std::vector<MghProblem> take() {
    two_variables();
    three_variables();
    four_variables();
    five_to_eleven_variables();
    watson();
    extended();
    sums();
    discretised();
    banded();
    linear();
    chebyquad();
    return std::move(all_);
  }

 private:
  using V = std::vector<Value>;
  using X = std::span<const Value>;

  void add(int number, std::string name, std::vector<double> start, std::function<V(X)> f,
           std::vector<double> minima) {
    all_.push_back({number, std::move(name), std::move(start), std::move(f), std::move(minima)});
  }

  void two_variables() {
    add(1, "Rosenbrock", {-1.2, 1}, [](X x) { return V{10 * (x[1] - square(x[0])), 1 - x[0]}; }, {0});
    add(2, "FreudensteinRoth", {0.5, -2},
        [](X x) {
          return V{-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]};
        },
        {0, 48.9842536792});
    add(3, "PowellBadlyScaled", {0, 1},
        [](X x) { return V{1e4 * x[0] * x[1] - 1, exp(-x[0]) + exp(-x[1]) - 1.0001}; }, {0});
    add(4, "BrownBadlyScaled", {1, 1}, [](X x) { return V{x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2}; }, {0});
    add(5, "Beale", {1, 1},
        [](X x) {
          return V{1.5 - x[0] * (1 - x[1]), 2.25 - x[0] * (1 - square(x[1])),
                   2.625 - x[0] * (1 - cube(x[1]))};
        },
        {0});
    add(6, "JennrichSampson", {0.3, 0.4},
        [](X x) {
          V f;
          for (int i = 1; i <= 10; ++i)
            f.push_back(2 + 2 * i - (exp(double(i) * x[0]) + exp(double(i) * x[1])));
          return f;
        },
        {124.362182356});
  }
  void three_variables() {
    add(7, "HelicalValley", {-1, 0, 0},
        [](X x) {
          const Value turn = atan(x[1] / x[0]) / (2 * std::numbers::pi) + select(x[0] < 0, x[0] * 0 + 0.5, 0);
          return V{10 * (x[2] - 10 * turn), 10 * (sqrt(square(x[0]) + square(x[1])) - 1), x[2]};
        },
        {0});
    add(8, "Bard", {1, 1, 1},
        [](X x) {
          const double y[] = {.14, .18, .22, .25, .29, .32, .35, .39, .37, .58, .73, .96, 1.34, 2.10, 4.39};
          V f;
          for (int i = 1; i <= 15; ++i)
            f.push_back(y[i - 1] - (x[0] + i / (double(16 - i) * x[1] + double(std::min(i, 16 - i)) * x[2])));
          return f;
        },
        {8.2148773065e-3, 17.4286933335});
    add(9, "Gaussian", {0.4, 1, 0},
        [](X x) {
          const double y[] = {.0009, .0044, .0175, .0540, .1295, .2420, .3521, .3989};
          V f;
          for (int i = 1; i <= 15; ++i)
            f.push_back(x[0] * exp(-x[1] * square((8 - i) / 2.0 - x[2]) / 2) - y[std::min(i, 16 - i) - 1]);
          return f;
        },
        {1.12793276962e-8});
    add(10, "Meyer", {0.02, 4000, 250},
        [](X x) {
          const double y[] = {34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744,
                              8261,  7030,  6005,  5147,  4427,  3820,  3307,  2872};
          V f;
          for (int i = 1; i <= 16; ++i) f.push_back(x[0] * exp(x[1] / (45.0 + 5 * i + x[2])) - y[i - 1]);
          return f;
        },
        {87.9458551709});
    add(11, "GulfResearch", {5, 2.5, 0.15},
        [](X x) {
          V f;
          for (int i = 1; i <= 99; ++i) {
            const double t = i / 100.0, y = 25 + std::pow(-50 * std::log(t), 2.0 / 3);
            f.push_back(exp(-pow(abs(y - x[1]), x[2]) / x[0]) - t);
          }
          return f;
        },
        {0});
    add(12, "Box3d", {0, 10, 20},
        [](X x) {
          V f;
          for (int i = 1; i <= 10; ++i) {
            const double t = 0.1 * i;
            f.push_back(exp(-t * x[0]) - exp(-t * x[1]) - (std::exp(-t) - std::exp(-10 * t)) * x[2]);
          }
          return f;
        },
        {0});
  }
  static V powell(X x) {
    V f;
    for (size_t k = 0; k + 3 < x.size(); k += 4) {
      f.push_back(x[k] + 10 * x[k + 1]);
      f.push_back(std::sqrt(5.0) * (x[k + 2] - x[k + 3]));
      f.push_back(square(x[k + 1] - 2 * x[k + 2]));
      f.push_back(std::sqrt(10.0) * square(x[k] - x[k + 3]));
    }
    return f;
  }
  void four_variables() {
    add(13, "PowellSingular", {3, -1, 0, 1}, powell, {0});
    add(14, "Wood", {-3, -1, -3, -1},
        [](X x) {
          return V{10 * (x[1] - square(x[0])),
                   1 - x[0],
                   std::sqrt(90.0) * (x[3] - square(x[2])),
                   1 - x[2],
                   std::sqrt(10.0) * (x[1] + x[3] - 2),
                   (x[1] - x[3]) / std::sqrt(10.0)};
        },
        {0});
    add(15, "KowalikOsborne", {0.25, 0.39, 0.415, 0.39},
        [](X x) {
          const double y[] = {.1957, .1947, .1735, .1600, .0844, .0627, .0456, .0342, .0323, .0235, .0246};
          const double u[] = {4, 2, 1, .5, .25, .167, .125, .1, .0833, .0714, .0625};
          V f;
          for (int i = 0; i < 11; ++i)
            f.push_back(y[i] - x[0] * (u[i] * u[i] + u[i] * x[1]) / (u[i] * u[i] + u[i] * x[2] + x[3]));
          return f;
        },
        {3.07505603849e-4, 1.02734e-3});
    add(16, "BrownDennis", {25, 5, -5, -1},
        [](X x) {
          V f;
          for (int i = 1; i <= 20; ++i) {
            const double t = i / 5.0;
            f.push_back(square(x[0] + t * x[1] - std::exp(t)) +
                        square(x[2] + x[3] * std::sin(t) - std::cos(t)));
          }
          return f;
        },
        {85822.2016264});
  }
  void five_to_eleven_variables() {
    add(17, "Osborne1", {0.5, 1.5, -1, 0.01, 0.02},
        [](X x) {
          const double y[] = {.844, .908, .932, .936, .925, .908, .881, .850, .818, .784, .751,
                              .718, .685, .658, .628, .603, .580, .558, .538, .522, .506, .490,
                              .478, .467, .457, .448, .438, .431, .424, .420, .414, .411, .406};
          V f;
          for (int i = 0; i < 33; ++i)
            f.push_back(y[i] - (x[0] + x[1] * exp(-10.0 * i * x[3]) + x[2] * exp(-10.0 * i * x[4])));
          return f;
        },
        {5.46489469748e-5});
    add(18, "BiggsExp6", {1, 2, 1, 1, 1, 1},
        [](X x) {
          V f;
          for (int i = 1; i <= 13; ++i) {
            const double t = 0.1 * i, y = std::exp(-t) - 5 * std::exp(-10 * t) + 3 * std::exp(-4 * t);
            f.push_back(x[2] * exp(-t * x[0]) - x[3] * exp(-t * x[1]) + x[5] * exp(-t * x[4]) - y);
          }
          return f;
        },
        {0, 5.65564994e-3});
    add(19, "Osborne2", {1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5},
        [](X x) {
          const double y[] = {1.366, 1.191, 1.112, 1.013, .991, .885, .831, .847, .786, .725, .746,
                              .679,  .608,  .655,  .616,  .606, .602, .626, .651, .724, .649, .649,
                              .694,  .644,  .624,  .661,  .612, .558, .533, .495, .500, .423, .395,
                              .375,  .372,  .391,  .396,  .405, .428, .429, .523, .562, .607, .653,
                              .672,  .708,  .633,  .668,  .645, .632, .591, .559, .597, .625, .739,
                              .710,  .729,  .720,  .636,  .581, .428, .292, .162, .098, .054};
          V f;
          for (int i = 0; i < 65; ++i) {
            const double t = i / 10.0;
            f.push_back(y[i] -
                        (x[0] * exp(-t * x[4]) + x[1] * exp(-square(t - x[8]) * x[5]) +
                         x[2] * exp(-square(t - x[9]) * x[6]) + x[3] * exp(-square(t - x[10]) * x[7])));
          }
          return f;
        },
        {4.01377362935e-2});
  }
  void watson() {
    const auto watson = [](X x) {
      V f;
      for (int i = 1; i <= 29; ++i) {
        const double t = i / 29.0;
        V slope, value;
        for (size_t j = 0; j < x.size(); ++j) {
          if (j > 0) slope.push_back(double(j) * std::pow(t, double(j) - 1) * x[j]);
          value.push_back(std::pow(t, double(j)) * x[j]);
        }
        f.push_back(total(slope) - square(total(value)) - 1);
      }
      f.push_back(x[0]);
      f.push_back(x[1] - square(x[0]) - 1);
      return f;
    };
    add(20, "Watson6", repeated(6, 0), watson, {2.28767005355e-3});
    add(20, "Watson9", repeated(9, 0), watson, {1.39976013e-6});
  }
  void extended() {
    std::vector<double> valley;
    for (int k = 0; k < 5; ++k) valley.push_back(-1.2), valley.push_back(1);
    add(21, "ExtendedRosenbrock", valley,
        [](X x) {
          V f;
          for (size_t k = 0; k + 1 < x.size(); k += 2)
            f.push_back(10 * (x[k + 1] - square(x[k]))), f.push_back(1 - x[k]);
          return f;
        },
        {0});
    add(22, "ExtendedPowell", {3, -1, 0, 1, 3, -1, 0, 1, 3, -1, 0, 1}, powell, {0});
    add(23, "Penalty1", {1, 2, 3, 4},
        [](X x) {
          V f, squares;
          for (const Value& v : x) f.push_back(std::sqrt(1e-5) * (v - 1)), squares.push_back(square(v));
          f.push_back(total(squares) - 0.25);
          return f;
        },
        {2.24997750e-5});
    add(24, "Penalty2", repeated(4, 0.5),
        [](X x) {
          const int n = int(x.size());
          const double root = std::sqrt(1e-5);
          V f{x[0] - 0.2}, squares;
          for (int i = 2; i <= n; ++i)
            f.push_back(root * (exp(x[size_t(i - 1)] / 10) + exp(x[size_t(i - 2)] / 10) - std::exp(i / 10.0) -
                                std::exp((i - 1) / 10.0)));
          for (int i = 2; i <= n; ++i) f.push_back(root * (exp(x[size_t(i - 1)] / 10) - std::exp(-0.1)));
          for (int j = 1; j <= n; ++j) squares.push_back(double(n - j + 1) * square(x[size_t(j - 1)]));
          f.push_back(total(squares) - 1);
          return f;
        },
        {9.37629e-6});
  }
  void sums() {
    std::vector<double> ramp;
    for (int j = 1; j <= 10; ++j) ramp.push_back(1 - j / 10.0);
    add(25, "VariablyDimensioned", ramp,
        [](X x) {
          V f, weighted;
          for (size_t j = 0; j < x.size(); ++j)
            f.push_back(x[j] - 1), weighted.push_back(double(j + 1) * (x[j] - 1));
          const Value sum = total(weighted);
          f.push_back(sum), f.push_back(square(sum));
          return f;
        },
        {0});
    add(26, "Trigonometric", repeated(10, 0.1),
        [](X x) {
          V cosines, f;
          for (const Value& v : x) cosines.push_back(cos(v));
          const Value sum = total(cosines);
          for (size_t i = 0; i < x.size(); ++i)
            f.push_back(double(x.size()) - sum + double(i + 1) * (1 - cos(x[i])) - sin(x[i]));
          return f;
        },
        {0, 2.79506e-5});
    add(27, "BrownAlmostLinear", repeated(10, 0.5),
        [](X x) {
          V f;
          Value product = x[0];
          for (size_t i = 1; i < x.size(); ++i) product = product * x[i];
          for (size_t i = 0; i + 1 < x.size(); ++i) f.push_back(x[i] + total(x) - double(x.size() + 1));
          f.push_back(product - 1);
          return f;
        },
        {0, 1});
  }
  void discretised() {
    std::vector<double> bow;
    for (int i = 1; i <= 10; ++i) bow.push_back(i / 11.0 * (i / 11.0 - 1));
    add(28, "DiscreteBoundaryValue", bow,
        [](X x) {
          const int n = int(x.size());
          const double h = 1.0 / (n + 1);
          V f;
          for (int i = 0; i < n; ++i) {
            Value v = 2 * x[size_t(i)] + h * h * cube(x[size_t(i)] + (i + 1) * h + 1) / 2;
            if (i > 0) v = v - x[size_t(i - 1)];
            if (i + 1 < n) v = v - x[size_t(i + 1)];
            f.push_back(v);
          }
          return f;
        },
        {0});
    add(29, "DiscreteIntegral", bow,
        [](X x) {
          const int n = int(x.size());
          const double h = 1.0 / (n + 1);
          V f;
          for (int i = 0; i < n; ++i) {
            const double t = (i + 1) * h;
            V parts;
            for (int j = 0; j < n; ++j) {
              const double s = (j + 1) * h;
              parts.push_back((j <= i ? (1 - t) * s : t * (1 - s)) * cube(x[size_t(j)] + s + 1));
            }
            f.push_back(x[size_t(i)] + h / 2 * total(parts));
          }
          return f;
        },
        {0});
  }
  void banded() {
    add(30, "BroydenTridiagonal", repeated(10, -1),
        [](X x) {
          V f;
          for (size_t i = 0; i < x.size(); ++i) {
            Value v = (3 - 2 * x[i]) * x[i] + 1;
            if (i > 0) v = v - x[i - 1];
            if (i + 1 < x.size()) v = v - 2 * x[i + 1];
            f.push_back(v);
          }
          return f;
        },
        {0});
    add(31, "BroydenBanded", repeated(10, -1),
        [](X x) {
          const int n = int(x.size());
          V f;
          for (int i = 0; i < n; ++i) {
            Value v = x[size_t(i)] * (2 + 5 * square(x[size_t(i)])) + 1;
            for (int j = std::max(0, i - 5); j <= std::min(n - 1, i + 1); ++j)
              if (j != i) v = v - x[size_t(j)] * (1 + x[size_t(j)]);
            f.push_back(v);
          }
          return f;
        },
        {0});
  }
  void linear() {
    add(32, "LinearFullRank", repeated(5, 1),
        [](X x) {
          V f;
          for (size_t i = 0; i < 10; ++i) {
            const Value mean = -0.2 * total(x) - 1;
            f.push_back(i < x.size() ? x[i] + mean : mean);
          }
          return f;
        },
        {5});
    const auto weighted = [](X x, size_t first, size_t last) {
      V parts;
      for (size_t j = first; j < last; ++j) parts.push_back(double(j + 1) * x[j]);
      return total(parts);
    };
    add(33, "LinearRank1", repeated(5, 1),
        [=](X x) {
          V f;
          for (int i = 1; i <= 10; ++i) f.push_back(double(i) * weighted(x, 0, x.size()) - 1);
          return f;
        },
        {90.0 / 42});
    add(34, "LinearRank1ZeroColumns", repeated(5, 1),
        [=](X x) {
          const Value sum = weighted(x, 1, x.size() - 1);
          V f{sum * 0 - 1};
          for (int i = 2; i <= 9; ++i) f.push_back(double(i - 1) * sum - 1);
          f.push_back(sum * 0 - 1);
          return f;
        },
        {124.0 / 34});
  }
  void chebyquad() {
    std::vector<double> spread;
    for (int j = 1; j <= 8; ++j) spread.push_back(j / 9.0);
    add(35, "Chebyquad", spread,
        [](X x) {
          V f;
          for (int i = 1; i <= int(x.size()); ++i) {
            V values;
            for (const Value& v : x) {
              const Value u = 2 * v - 1;
              Value before = u * 0 + 1, now = u;
              for (int k = 2; k <= i; ++k) {
                const Value next = 2 * u * now - before;
                before = now, now = next;
              }
              values.push_back(now);
            }
            f.push_back(autodiff::mean(values) - (i % 2 ? 0 : -1.0 / (i * i - 1)));
          }
          return f;
        },
        {3.51687372568e-3});
  }

  std::vector<MghProblem> all_;
};

inline std::vector<MghProblem> mgh_problems() { return MghProblems().take(); }

}  // namespace lockstep::solve::test
