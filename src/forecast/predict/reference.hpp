// Jumps in plain C++, in the order of sums that jump_kernels.hpp specifies. T: float or double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/nn/model.hpp"

namespace lockstep::forecast::reference {

/// Snapshots in rows, newest first.
template <class T>
using Path = std::vector<std::vector<T>>;

/// Parts of the Gram matrices, a row of upper triangles for each chunk.
template <class T>
std::vector<T> gram(const Path<T>& path, std::span<const nn::ParameterTensor> tensors);
/// base + sum over j of factors[tensor][j] d_j.
template <class T>
std::vector<T> move(const Path<T>& path, std::span<const nn::ParameterTensor> tensors,
                    std::span<const T> base, std::span<const T> factors);
/// The differences of the elements at `places`, newest first, element after element.
template <class T>
std::vector<T> samples(const Path<T>& path, std::span<const int32_t> places);
/// A move by the network y = a x + v tanh(B x + b) of `taps` and `units`, as in follow_kernel; `weights` are a, B,
/// b, v.
template <class T>
struct Network {
  int taps, units;
  std::span<const T> weights;
};
template <class T>
std::vector<T> follow(const Path<T>& path, std::span<const nn::ParameterTensor> tensors,
                      std::span<const T> base, std::span<const T> scales, const Network<T>& network,
                      double intervals, T most);
template <class T>
std::vector<T> scatter(std::span<const nn::ParameterTensor> tensors, std::span<const T> base,
                       std::span<const T> lengths, uint32_t draw, uint32_t key);
template <class T>
std::vector<T> average(const Path<T>& path);

}  // namespace lockstep::forecast::reference
