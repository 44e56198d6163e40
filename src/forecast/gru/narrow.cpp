#include "forecast/gru/narrow.hpp"

#include <fmt/format.h>

#include "forecast/rollout/element.hpp"
#include "forecast/rollout/weights/narrow.hpp"
#include "lockstep/error.hpp"
#include "primitives/products/column_product.hpp"

namespace lockstep::forecast {

namespace {

/// x (B, K) times u (K, N). Scales of fp8 belong to the columns of U: of u, or, on the way `back`, to its rows.
template <class W, int Rows>
Kernel product_kernel(bool back) {
  constexpr bool scaled = std::is_same_v<W, uint8_t>;
  const std::string kernel_name = fmt::format("forecast.gru.product{}{}{}", weight_word<f32, W>(),
                                              scaled && back ? ".back" : "", Rows > 1 ? ".batch" : "");
  const auto body = [](const At<2>& at, const Grid<f32, 2>& x, const Grid<W, 2>& u, const Out<f32, 2>& to,
                       auto scaled_element, auto scaled_sum) {
    const Val<i32> column = at.x;
    primitives::column_sums<f32, Rows>(
        Val<i32>(at.y) * Rows, x.size(0), x.size(1),
        [&](const Val<i32>& row, const Val<i32>& k) { return Val<f32>(x(row, k)); },
        [&](const Val<i32>& k) { return scaled_element(element<f32>(u, k, column), k); },
        [&](const Val<i32>& row, const Val<f32>& sum) { to(row, column) = scaled_sum(sum, column); });
  };
  const auto same = [](const Val<f32>& v, const Val<i32>&) { return v; };
  if constexpr (scaled)
    return kernel(kernel_name,
                  [&](At<2> at, Grid<f32, 2> x, Grid<W, 2> u, Grid<f32, 1> scales, Out<f32, 2> to) {
                    const auto by_scale = [&](const Val<f32>& v, const Val<i32>& i) { return v * scales[i]; };
                    back ? body(at, x, u, to, by_scale, same) : body(at, x, u, to, same, by_scale);
                  });
  else
    return kernel(kernel_name, [&](At<2> at, Grid<f32, 2> x, Grid<W, 2> u, Out<f32, 2> to) {
      body(at, x, u, to, same, same);
    });
}

template <class W>
const Kernel& product_kernel(bool batch, bool back) {
  using primitives::kMatmulRows;
  static const Kernel kernels[2][2] = {
      {product_kernel<W, 1>(false), product_kernel<W, 1>(true)},
      {product_kernel<W, kMatmulRows>(false), product_kernel<W, kMatmulRows>(true)}};
  return kernels[batch][std::is_same_v<W, uint8_t> && back];
}

Storage storage_of(WeightType type) { return type == WeightType::bf16 ? Storage::bf16 : Storage::u8; }

/// Columns of U, which are the rows of U h, behind each other, as round_weights() of matrices has them.
Array rows_of(const Array& u) { return u.transposed().packed().reshape({1, u.size(1), u.size(0)}); }

}  // namespace

GruWeights round_weights(const GruWeights& weights, WeightType type, std::string_view where) {
  GruWeights rounded = weights;
  rounded.u = round_weights(rows_of(weights.u), type, where)[0].transposed().packed();
  return rounded;
}

int64_t NarrowRecurrent::bytes(WeightType type, int64_t hidden, bool columns, bool transposed) {
  const int64_t elements = 3 * hidden * hidden * (int64_t(columns) + int64_t(transposed));
  return elements * size_of(storage_of(type)) +
         (type == WeightType::fp8 ? 3 * hidden * size_of(Storage::f32) : 0);
}

NarrowRecurrent::NarrowRecurrent(const Device& device, WeightType type, int64_t hidden, bool columns,
                                 bool transposed)
    : device_(device), type_(type), hidden_(hidden) {
  const auto make = [&](Storage storage, const Shape& shape) {
    const Buffer buffer = device.allocate(storage, shape);
    device.clear(buffer);
    return buffer;
  };
  if (columns) u_ = make(storage_of(type), {hidden, 3 * hidden});
  if (transposed) transposed_ = make(storage_of(type), {3 * hidden, hidden});
  if (type == WeightType::fp8) scales_ = make(Storage::f32, {3 * hidden});
}

void NarrowRecurrent::set(const Array& u) const {
  const Array rows = rows_of(u);
  round_weights(rows, type_, "GruSequence: U");  // refuses numbers that do not round
  Array kept = rows[0];
  if (type_ == WeightType::bf16) {
    kept = kept.to(Storage::bf16);
  } else {
    const auto width = size_t(hidden_);
    std::vector<uint8_t> bytes;
    std::vector<float> scales;
    bytes.reserve(3 * width * width);
    for (size_t i = 0; i < 3 * width; ++i) {
      const std::span<const float> row = kept.as<float>().subspan(i * width, width);
      scales.push_back(row_scale(row));
      for (const float v : row) bytes.push_back(f32_to_e4m3(v / scales.back()));
    }
    kept = Array::of(std::move(bytes), kept.shape());
    device_.write(scales_, scales.data(), int64_t(scales.size() * sizeof(float)));
  }
  if (u_) {
    const Array columns = kept.transposed().packed();
    device_.write(u_, columns.data(), columns.bytes());
  }
  if (transposed_) device_.write(transposed_, kept.data(), kept.bytes());
}

template <class W>
void NarrowRecurrent::multiply(const Buffer& x, const Buffer& u, const Buffer& scales, const Buffer& to,
                               bool back) const {
  const int64_t b = to.shape()[0], rows = b > 1 ? primitives::kMatmulRows : 1;
  const Kernel& k = product_kernel<W>(b > 1, back);
  const Shape extent{(b + rows - 1) / rows, to.shape()[1]};
  if constexpr (std::is_same_v<W, uint8_t>)
    device_.launch(k, extent, x, u, scales, to);
  else
    device_.launch(k, extent, x, u, to);
}

void NarrowRecurrent::times(const Buffer& x, int64_t first, int64_t count, const Buffer& to) const {
  const Buffer u = u_.window({0, first * hidden_}, {hidden_, count * hidden_});
  if (type_ == WeightType::bf16) return multiply<lockstep::bf16>(x, u, {}, to, false);
  multiply<uint8_t>(x, u, scales_.rows(first * hidden_, count * hidden_), to, false);
}

void NarrowRecurrent::times_transposed(const Buffer& x, int64_t first, int64_t count,
                                       const Buffer& to) const {
  const Buffer u = transposed_.rows(first * hidden_, count * hidden_);
  if (type_ == WeightType::bf16) return multiply<lockstep::bf16>(x, u, {}, to, true);
  multiply<uint8_t>(x, u, scales_.rows(first * hidden_, count * hidden_), to, true);
}

std::vector<Kernel> NarrowRecurrent::kernels() const {
  if (type_ == WeightType::bf16)
    return {product_kernel<lockstep::bf16>(false, false), product_kernel<lockstep::bf16>(true, false)};
  std::vector<Kernel> all{product_kernel<uint8_t>(false, false), product_kernel<uint8_t>(true, false)};
  for (const bool batch : {false, true}) all.push_back(product_kernel<uint8_t>(batch, true));
  return all;
}

}  // namespace lockstep::forecast
