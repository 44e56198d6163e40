// Rows: lanes that access 2 or 4 elements each, and shifted rows of narrow elements, whole and in part, against the
// interpreter.
#include <fmt/format.h>

#include <cstring>

#include "checks.hpp"
#include "lockstep/device.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::web_tests {

namespace {

template <class T>
std::vector<T> numbers(int64_t count) {
  std::vector<T> all(static_cast<size_t>(count));
  for (size_t k = 0; k < all.size(); ++k) {
    const auto v = uint32_t(k) * 2654435761u;
    if constexpr (sizeof(T) < 4)
      std::memcpy(&all[k], &v, sizeof(T));
    else
      all[k] = T(int32_t(v >> 8) - (1 << 22));
  }
  return all;
}

/// The kernel's results on both devices, for every number of points up to several vectors.
template <class T>
void compare(const Kernel& kernel, int each) {
  const Device devices[] = {Device::open("cpu"), Device::open("interp")};
  for (int64_t points = 1; points <= 21; ++points) {
    std::vector<std::byte> results[2];
    for (int d = 0; d < 2; ++d) {
      const Buffer in = devices[d].upload(numbers<T>(each * points)),
                   out = devices[d].upload(std::vector<T>(size_t(each * points)));
      devices[d].launch(kernel, {points}, in, out);
      const std::vector<T> got = devices[d].download<T>(out);
      results[d].resize(got.size() * sizeof(T));
      std::memcpy(results[d].data(), got.data(), results[d].size());
    }
    const std::string what = fmt::format("rows of {} at {} points", kernel.name(), points);
    check(results[0] == results[1], what.c_str());
  }
}

/// The components are rotated, so that each lane's can be distinguished from those of the others.
template <class T, int K>
void wide(const char* type) {
  for (const bool parted : {false, true}) {
    const auto turned = [=](At<1> at, Grid<T, 1> in, Out<T, 1> out) {
      const Val<i32> base = at.x * K;
      const auto copy = [&] {
        const Wide<T, K> v = in.template wide<K>(base);
        Wide<T, K> w = v;
        for (int k = 0; k < K; ++k) w.v[size_t(k)] = v[(k + 1) % K] + v[k] * T(k + 1);
        out.store_wide(w, base);
      };
      parted ? if_(at.x % 3 != 1, copy) : copy();
    };
    compare<T>(kernel(fmt::format("{} by {}{}", type, K, parted ? ", parted" : ""), turned), K);
  }
}

template <class T>
void shifted(const char* type) {
  for (const int by : {-3, 0, 2}) {
    const auto moved = [=](At<1> at, Grid<T, 1> in, Out<T, 1> out) { out[at] = in[at.x(by)]; };
    compare<T>(kernel(fmt::format("{} moved by {}", type, by), moved), 1);
  }
}

}  // namespace

void rows() {
  wide<f32, 2>("f32"), wide<f32, 4>("f32");
  wide<i32, 2>("i32"), wide<u32, 4>("u32");
  wide<f64, 2>("f64"), wide<f64, 4>("f64");
  shifted<uint8_t>("u8"), shifted<f16>("f16"), shifted<bf16>("bf16"), shifted<f64>("f64");
}

}  // namespace lockstep::web_tests
