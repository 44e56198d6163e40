// Weights of PyTorch's nn.GRU: rows of gates r, z, n become columns z, r, n.
#include <fmt/format.h>

#include "io/arrays/npy.hpp"
#include "io/arrays/safetensors.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/gru.hpp"

namespace lockstep::forecast {

namespace {

/// Our gates z, r, n are at 1, 0, 2 in PyTorch's order.
constexpr int64_t kTheirs[] = {1, 0, 2};

template <class T>
Array turned(const Array& from, int64_t d) {
  const int64_t columns = from.rank() == 2 ? from.size(1) : 1;
  std::vector<T> to(size_t(3 * d * columns), T(0));
  const std::span<const T> rows = from.as<T>();
  for (int64_t g = 0; g < 3; ++g)
    for (int64_t i = 0; i < d; ++i)
      for (int64_t k = 0; k < columns; ++k)
        to[size_t(k * 3 * d + g * d + i)] = rows[size_t((kTheirs[g] * d + i) * columns + k)];
  return Array::of(std::move(to), from.rank() == 2 ? Sizes{columns, 3 * d} : Sizes{3 * d});
}

void expect_array(const Array& a, const char* name_of, const Sizes& shape, Storage storage) {
  if (a.shape() == shape && a.storage() == storage) return;
  throw InputError(fmt::format("{} elements of {}", a.elements(), name(a.storage())), name_of,
                   fmt::format("{} {}", name(storage),
                               shape.size() == 2 ? fmt::format("({}, {})", shape[0], shape[1])
                                                 : fmt::format("({})", shape[0])));
}

}  // namespace

GruWeights weights_of_torch(const Array& weight_ih, const Array& weight_hh, const Array& bias_ih,
                            const Array& bias_hh) {
  const Storage storage = weight_hh.storage();
  if (storage != Storage::f32 && storage != Storage::f64)
    throw InputError(fmt::format("elements of {}", name(storage)), "weight_hh", "f32 or f64");
  if (weight_hh.rank() != 2 || weight_hh.empty() || weight_hh.size(0) != 3 * weight_hh.size(1))
    throw InputError(fmt::format("{} axes, {} elements", weight_hh.rank(), weight_hh.elements()), "weight_hh",
                     "3 D x D");
  const int64_t d = weight_hh.size(1);
  if (weight_ih.rank() != 2 || weight_ih.empty())
    throw InputError(fmt::format("{} axes, {} elements", weight_ih.rank(), weight_ih.elements()), "weight_ih",
                     "3 D x I");
  expect_array(weight_ih, "weight_ih", {3 * d, weight_ih.size(1)}, storage);
  if (!bias_ih.empty()) expect_array(bias_ih, "bias_ih", {3 * d}, storage);
  if (!bias_hh.empty()) expect_array(bias_hh, "bias_hh", {3 * d}, storage);
  const auto turn = [&](const Array& a) {
    const Array packed = a.packed();
    return storage == Storage::f64 ? turned<f64>(packed, d) : turned<f32>(packed, d);
  };
  const Array none = Array::of(std::vector<double>(size_t(3 * d), 0.0)).to(storage);
  return {turn(weight_ih), turn(weight_hh), bias_ih.empty() ? none : turn(bias_ih),
          bias_hh.empty() ? none : turn(bias_hh)};
}

GruWeights load_torch_gru(const std::filesystem::path& path, int layer, const std::string& prefix) {
  const auto full = [&](const char* what) { return fmt::format("{}{}_l{}", prefix, what, layer); };
  const std::vector<std::string> names{full("weight_ih"), full("weight_hh"), full("bias_ih"),
                                       full("bias_hh")};
  const io::NpzArrays arrays =
      path.extension() == ".safetensors" ? io::read_safetensors(path, names) : io::read_npz(path, names);
  const auto bias = [&](const std::string& name) {
    for (const auto& [own, array] : arrays)
      if (own == name) return array;
    return Array();
  };
  const auto matrix = [&](const std::string& name) { return io::find_array(arrays, name, path.string()); };
  return weights_of_torch(matrix(names[0]), matrix(names[1]), bias(names[2]), bias(names[3]));
}

}  // namespace lockstep::forecast
