// Gradients of reads through index arrays are correctly rounded sums. The reference is Shewchuk's: a list of floats
// without common bits whose sum is exact.
#include <algorithm>
#include <limits>
#include <random>

#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using Doubles = std::vector<double>;

/// The sum of `terms`, rounded once to nearest even.
double correctly_rounded_sum(const Doubles& terms) {
  Doubles parts;  // by magnitude, without common bits
  for (double x : terms) {
    size_t kept = 0;
    for (double y : parts) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) parts[kept++] = low;
      x = high;
    }
    parts.resize(kept);
    parts.push_back(x);
  }
  double sum = 0, rest = 0;
  while (!parts.empty()) {
    const double x = sum;
    const double y = parts.back();
    parts.pop_back();
    sum = x + y;
    rest = y - (sum - x);
    if (rest != 0) break;
  }
  if (!parts.empty() && rest != 0 &&
      (rest < 0) == (parts.back() < 0)) {  // half a unit and more of the same sign
    const double twice = 2 * rest, further = sum + twice;
    if (twice == further - sum) sum = further;
  }
  return sum;
}

/// Gradient of a buffer whose element 0 all lanes read and whose element 1 none: by atomic operations, and along a table
/// of an index array, in rows of that many terms.
template <class T>
std::vector<T> summed(const Device& device, const std::vector<T>& terms) {
  const Kernel broadcast = kernel("broadcast", [](At<1> at, Grid<T, 1> x, Out<T, 1> y) { y[at] = x(0); });
  const Kernel indexed = kernel("indexed", [](At<1> at, Grid<T, 1> x, Out<T, 1> y, Grid<i32, 1> index) {
    y[at] = x(Val<i32>(index[at]));
  });
  const auto n = int64_t(terms.size());
  std::vector<std::vector<T>> found;
  for (const Kernel& read : {broadcast, indexed}) {
    const Buffer gradient = device.allocate<T>({2});
    Arguments arguments;
    arguments.set("b0", device.upload(std::vector<T>{1, 1}))
        .set("b1_cotangent", device.upload(terms))
        .set("b0_gradient", gradient);
    if (read.name() == "indexed") arguments.set("b2", device.upload(std::vector<i32>(terms.size())));
    differentiate(read).launch(device, {n}, arguments);
    found.push_back(device.download<T>(gradient));
  }
  for (size_t k = 0; k < 2; ++k) {
    const T sum = found[0][k], along = found[1][k];
    EXPECT_TRUE(std::isnan(sum) ? std::isnan(along)
                                : sum == along && std::signbit(sum) == std::signbit(along))
        << sum << " and along a table " << along;
  }
  return found[1];
}

TEST(ExactSum, RoundsTheExactSumOfDoubles) {
  std::mt19937_64 random(7);
  const Device cpu = Device::open("cpu");
  for (int round = 0; round < 60; ++round) {
    const int spread = round % 3 == 0 ? 60 : round % 3 == 1 ? 300 : 2000;
    Doubles terms;
    for (int k = 0; k < 40; ++k) {
      const int exponent = int(random() % uint64_t(spread)) - (spread == 2000 ? 1074 : spread / 2);
      terms.push_back(std::ldexp(double(int64_t(random())), exponent - 63));
      if (random() % 2) terms.push_back(-terms[random() % terms.size()]);
    }
    std::shuffle(terms.begin(), terms.end(), random);
    const Doubles got = summed(cpu, terms);
    EXPECT_EQ(got[0], correctly_rounded_sum(terms)) << round;
    EXPECT_EQ(std::bit_cast<uint64_t>(got[1]), 0u);
  }
}

TEST(ExactSum, RoundsTheExactSumOfFloats) {
  std::mt19937_64 random(9);
  const Device cpu = Device::open("cpu");
  for (int round = 0; round < 40; ++round) {
    std::vector<float> terms;
    long double exact = 0;  // 64 bits hold these terms' sums
    for (int k = 0; k < 40; ++k) {
      const int exponent = int(random() % 24) - (round % 2 ? 160 : 12);
      terms.push_back(std::ldexp(float(int32_t(random())), exponent));
      exact += terms.back();
    }
    EXPECT_EQ(summed(cpu, terms)[0], float(exact)) << round;
  }
}

TEST(ExactSum, EndsOfTheRange) {
  constexpr double kMost = std::numeric_limits<double>::max(),
                   kInfinity = std::numeric_limits<double>::infinity(), kLeast = 0x1p-1074,
                   kNan = std::numeric_limits<double>::quiet_NaN();
  const Device cpu = Device::open("cpu"), interp = Device::open("interp");
  const std::vector<std::pair<Doubles, double>> cases{
      {{kMost, kMost, -kMost}, kMost},
      {{kMost, kMost}, kInfinity},
      {{-kMost, -kMost}, -kInfinity},
      {{kMost, 0x1p969}, kMost},
      {{kMost, 0x1p970}, kInfinity},  // a tie, to even
      {{-kMost, -0x1p970}, -kInfinity},
      {{kLeast, kLeast, kLeast}, 3 * kLeast},
      {{-0x1p-1022, kLeast}, -(0x1p-1022 - kLeast)},
      {{1, 0x1p-53}, 1},
      {{1, 0x1p-53, kLeast}, 1 + 0x1p-52},
      {{-1, -0x1p-53, kLeast}, -1},
      {{1 + 0x1p-52, 0x1p-53}, 1 + 0x1p-51},
      {{kInfinity, 1}, kInfinity},
      {{-kInfinity, kMost}, -kInfinity},
      {{1, -1}, 0},
      {{-0.0}, 0},
  };
  for (const Device& device : {cpu, interp}) {
    for (const auto& [terms, sum] : cases)
      EXPECT_EQ(std::bit_cast<uint64_t>(summed(device, terms)[0]), std::bit_cast<uint64_t>(sum)) << terms[0];
    EXPECT_TRUE(std::isnan(summed(device, Doubles{kNan, 1.0})[0]));
    EXPECT_TRUE(std::isnan(summed(device, Doubles{kInfinity, -kInfinity})[0]));
    const float most = std::numeric_limits<float>::max(), least = 0x1p-149f;
    EXPECT_EQ(summed<float>(device, {most, most, -most})[0], most);
    EXPECT_EQ(summed<float>(device, {most, most})[0], float(kInfinity));
    EXPECT_EQ(summed<float>(device, {-0x1p-126f, least})[0], -(0x1p-126f - least));
    EXPECT_EQ(summed<float>(device, {1, 0x1p-24f, least})[0], 1 + 0x1p-23f);
  }
}

// Many terms at the largest digit: the words hold them without a carry between launches. Along a table: many pieces.
TEST(ExactSum, ManyTermsAtTheTop) {
  const Device cpu = Device::open("cpu");
  const size_t n = 200000;
  std::vector<float> terms(n, 0x1.fffffep+100f);
  EXPECT_EQ(summed(cpu, terms)[0], float(double(0x1.fffffep+100f) * double(n)));
  for (size_t k = 0; k < n; k += 2) terms[k] = -terms[k];
  EXPECT_EQ(summed(cpu, terms)[0], 0);
}

// Rows about the length of a piece, with terms that need every part of a sum and with those that none holds.
TEST(ExactSum, RowsOfSeveralPieces) {
  std::mt19937_64 random(11);
  const Device cpu = Device::open("cpu");
  for (const size_t n : {1023, 1024, 1025, 2049, 5000})
    for (const int spread : {4, 90, 500}) {
      Doubles terms;
      for (size_t k = 0; k < n; ++k)
        terms.push_back(std::ldexp(double(int64_t(random())), int(random() % uint64_t(spread)) - 63));
      EXPECT_EQ(summed(cpu, terms)[0], correctly_rounded_sum(terms)) << n << " " << spread;
    }
}

}  // namespace
}  // namespace lockstep
