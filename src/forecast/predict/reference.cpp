#include "forecast/predict/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::forecast::reference {
namespace {

constexpr int64_t kChunk = 8192, kLanes = 256;

template <class T>
T difference_of(const Path<T>& path, int j, int64_t i) {
  return path[size_t(j)][size_t(i)] - path[size_t(j) + 1][size_t(i)];
}

template <class T>
T chunk_product(const Path<T>& path, int i, int j, int64_t first, int64_t end) {
  std::array<T, kLanes> lanes{};
  for (int64_t l = 0; l < kLanes; ++l)
    for (int64_t at = first + l; at < end; at += kLanes)
      lanes[size_t(l)] = std::fma(difference_of(path, i, at), difference_of(path, j, at), lanes[size_t(l)]);
  for (size_t s = kLanes / 2; s >= 1; s /= 2)
    for (size_t l = 0; l < s; ++l) lanes[l] += lanes[l + s];
  return lanes[0];
}

uint32_t finalise(uint32_t h) {
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

}  // namespace

template <class T>
std::vector<T> gram(const Path<T>& path, std::span<const nn::ParameterTensor> tensors) {
  const int count = int(path.size()) - 1;
  std::vector<T> parts;
  for (const nn::ParameterTensor& t : tensors)
    for (int64_t first = 0; first < t.size; first += kChunk)
      for (int i = 0; i < count; ++i)
        for (int j = i; j < count; ++j)
          parts.push_back(
              chunk_product(path, i, j, t.offset + first, t.offset + std::min(first + kChunk, t.size)));
  return parts;
}

template <class T>
std::vector<T> move(const Path<T>& path, std::span<const nn::ParameterTensor> tensors,
                    std::span<const T> base, std::span<const T> factors) {
  const size_t count = path.size() - 1;
  std::vector<T> to(base.size());
  for (size_t t = 0; t < tensors.size(); ++t)
    for (int64_t i = tensors[t].offset; i < tensors[t].offset + tensors[t].size; ++i) {
      T sum = 0;
      for (size_t j = 0; j < count; ++j)
        sum = std::fma(factors[t * count + j], difference_of(path, int(j), i), sum);
      to[size_t(i)] = base[size_t(i)] + sum;
    }
  return to;
}

template <class T>
std::vector<T> samples(const Path<T>& path, std::span<const int32_t> places) {
  std::vector<T> found;
  for (const int32_t place : places)
    for (int j = 0; j + 1 < int(path.size()); ++j) found.push_back(difference_of(path, j, place));
  return found;
}

template <class T>
std::vector<T> follow(const Path<T>& path, std::span<const nn::ParameterTensor> tensors,
                      std::span<const T> base, std::span<const T> scales, const Network<T>& network,
                      double intervals, T most) {
  const auto taps = size_t(network.taps), units = size_t(network.units);
  const T *a = network.weights.data(), *b = a + taps, *offsets = b + units * taps, *v = offsets + units;
  std::vector<T> to(base.size());
  for (size_t t = 0; t < tensors.size(); ++t)
    for (int64_t i = tensors[t].offset; i < tensors[t].offset + tensors[t].size; ++i) {
      std::vector<T> past;  // oldest first
      for (size_t j = taps; j-- > 0;) past.push_back(difference_of(path, int(j), i) / scales[t]);
      T moved = 0;
      for (double left = intervals; left > 0; --left) {
        T next = 0, largest = 0;
        for (size_t j = 0; j < taps; ++j) {
          next += a[j] * past[past.size() - 1 - j];
          largest = std::max(largest, std::abs(past[past.size() - 1 - j]));
        }
        for (size_t u = 0; u < units; ++u) {
          T inside = offsets[u];
          for (size_t j = 0; j < taps; ++j) inside += b[u * taps + j] * past[past.size() - 1 - j];
          next += v[u] * std::tanh(inside);
        }
        next = std::clamp(next, -most * largest, most * largest);
        moved += T(std::min(left, 1.0)) * next;
        past.push_back(next);
      }
      to[size_t(i)] = base[size_t(i)] + moved * scales[t];
    }
  return to;
}

template <class T>
std::vector<T> scatter(std::span<const nn::ParameterTensor> tensors, std::span<const T> base,
                       std::span<const T> lengths, uint32_t draw, uint32_t key) {
  std::vector<T> to(base.size());
  for (size_t t = 0; t < tensors.size(); ++t)
    for (int64_t i = tensors[t].offset; i < tensors[t].offset + tensors[t].size; ++i) {
      const uint32_t word = finalise(finalise(uint32_t(i) ^ key) + draw * 0x9E3779B9u);
      to[size_t(i)] = base[size_t(i)] + ((word & 1) != 0 ? lengths[t] : -lengths[t]);
    }
  return to;
}

template <class T>
std::vector<T> average(const Path<T>& path) {
  std::vector<T> to = path[0];
  for (size_t i = 0; i < to.size(); ++i) {
    for (size_t j = 1; j < path.size(); ++j) to[i] += path[j][i];
    to[i] /= T(path.size());
  }
  return to;
}

#define LOCKSTEP_JUMP_REFERENCE(T)                                                                         \
  template std::vector<T> gram(const Path<T>&, std::span<const nn::ParameterTensor>);                      \
  template std::vector<T> move(const Path<T>&, std::span<const nn::ParameterTensor>, std::span<const T>,   \
                               std::span<const T>);                                                        \
  template std::vector<T> samples(const Path<T>&, std::span<const int32_t>);                               \
  template std::vector<T> follow(const Path<T>&, std::span<const nn::ParameterTensor>, std::span<const T>, \
                                 std::span<const T>, const Network<T>&, double, T);                        \
  template std::vector<T> scatter(std::span<const nn::ParameterTensor>, std::span<const T>,                \
                                  std::span<const T>, uint32_t, uint32_t);                                 \
  template std::vector<T> average(const Path<T>&);
LOCKSTEP_JUMP_REFERENCE(float)
LOCKSTEP_JUMP_REFERENCE(double)
#undef LOCKSTEP_JUMP_REFERENCE

}  // namespace lockstep::forecast::reference
