// Tools of the CPU back end's tests.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::test {

inline Device cpu(int threads = 0) {
  DeviceOptions options;
  options.threads = threads;
  return Device::open("cpu", options);
}

template <class T>
std::vector<T> random_numbers(size_t n, T low, T high, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::vector<T> v(n);
  for (T& x : v) {
    if constexpr (std::is_floating_point_v<T>)
      x = std::uniform_real_distribution<T>(low, high)(engine);
    else
      x = T(std::uniform_int_distribution<int64_t>(low, high)(engine));
  }
  return v;
}

/// Differing elements by bits; NaNs count as equal.
template <class T>
int64_t differing(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return -1;
  int64_t n = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(a[k]) && std::isnan(b[k])) continue;
    n += std::memcmp(&a[k], &b[k], sizeof(T)) != 0;
  }
  return n;
}

}  // namespace lockstep::test
