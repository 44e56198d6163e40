#include "primitives/fft/lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/cached_kernel.hpp"

namespace lockstep::primitives::fft {

std::string Line::key() const {
  return fmt::format("{}{}.{}{}.{}{}.{}{}{}.{}{}.{}", rows ? "rows" : "columns", points, int(source),
                     source_entries, int(sink), sink_entries, int(swap_in), int(swap_out), int(scaled),
                     int(factor_in), int(factor_out), factor_points);
}
std::string Layout::key() const { return fmt::format("{}{}{}", int(batched), int(pairs_in), int(pairs_out)); }

namespace {

/// Element at batch, axis 0, axis 1 (and component) of a buffer with or without the batch axis.
template <bool kBatched, class B, class... C>
auto element(const B& buffer, const Val<i32>& z, const Val<i32>& y, const Val<i32>& x, const C&... c) {
  if constexpr (kBatched)
    return buffer(z, y, x, c...);
  else
    return buffer(y, x, c...);
}
template <bool kBatched, class T, int R, class... C>
Complex<T> pair_at(const Grid<T, R>& from, bool aligned, const Val<i32>& z, const Val<i32>& y,
                   const Val<i32>& x, const C&... c) {
  if (aligned) {
    const auto both = [&] {
      if constexpr (kBatched)
        return from.template wide<2>(z, y, x, c...);
      else
        return from.template wide<2>(y, x, c...);
    }();
    return {both[0], both[1]};
  }
  if constexpr (sizeof...(C) == 0)
    return {element<kBatched>(from, z, y, x), element<kBatched>(from, z, y, x + 1)};
  else
    return {element<kBatched>(from, z, y, x, 0), element<kBatched>(from, z, y, x, 1)};
}
template <bool kBatched, class T, int R, class... C>
void put_pair(const Out<T, R>& to, bool aligned, const Complex<T>& a, const Val<i32>& z, const Val<i32>& y,
              const Val<i32>& x, const C&... c) {
  if (aligned) {
    const Wide<T, 2> both{{a.re, a.im}};
    if constexpr (kBatched)
      to.template store_wide<2>(both, z, y, x, c...);
    else
      to.template store_wide<2>(both, y, x, c...);
  } else if constexpr (sizeof...(C) == 0) {
    element<kBatched>(to, z, y, x) = a.re;
    element<kBatched>(to, z, y, x + 1) = a.im;
  } else {
    element<kBatched>(to, z, y, x, 0) = a.re;
    element<kBatched>(to, z, y, x, 1) = a.im;
  }
}

template <class T, class Place, bool kBatched, bool kRealIn, bool kRealOut>
Kernel make(const std::string& name, const Layout& layout, const LineBody<T, Place>& body,
            const KernelOptions& options) {
  constexpr int kAxes = kBatched ? 3 : 2, kIn = kRealIn ? kAxes : kAxes + 1,
                kOut = kRealOut ? kAxes : kAxes + 1;
  using V = Val<i32>;
  return kernel(
      name,
      [&](Place place, Grid<T, kIn> from, Out<T, kOut> to, Grid<T, 2> table, Grid<T, 2> factors,
          Param<T> scale, Param<i32> number) {
        Memory<T> m;
        if constexpr (kRealIn) {
          m.read_real = [&](const V& z, const V& y, const V& x) -> Val<T> {
            return element<kBatched>(from, z, y, x);
          };
          m.read_pair = [&](const V& z, const V& y, const V& x) {
            return pair_at<kBatched, T>(from, layout.pairs_in, z, y, x);
          };
        } else {
          m.read_complex = [&](const V& z, const V& y, const V& x) {
            return pair_at<kBatched, T>(from, layout.pairs_in, z, y, x, 0);
          };
        }
        if constexpr (kRealOut) {
          m.write_real = [&](const V& z, const V& y, const V& x, const Val<T>& a) {
            element<kBatched>(to, z, y, x) = a;
          };
          m.write_pair = [&](const V& z, const V& y, const V& x, const Complex<T>& a) {
            put_pair<kBatched, T>(to, layout.pairs_out, a, z, y, x);
          };
        } else {
          m.write_complex = [&](const V& z, const V& y, const V& x, const Complex<T>& a) {
            put_pair<kBatched, T>(to, layout.pairs_out, a, z, y, x, 0);
          };
        }
        const auto entry = [](const Grid<T, 2>& from_table, const V& at) {
          const auto w = from_table.template wide<2>(at, 0);
          return Complex<T>{w[0], w[1]};
        };
        m.root = [&, entry](const V& at) { return entry(table, at); };
        m.factor = [&, entry](const V& at) { return entry(factors, at); };
        body(place, m, scale, number);
      },
      options);
}

template <class T, class Place>
Kernel trace(const std::string& name, const Line& line, const Layout& layout, const LineBody<T, Place>& body,
             const KernelOptions& options) {
  const auto of = [&]<bool kBatched>() {
    if (line.real_source()) return make<T, Place, kBatched, true, false>(name, layout, body, options);
    if (line.real_sink()) return make<T, Place, kBatched, false, true>(name, layout, body, options);
    return make<T, Place, kBatched, false, false>(name, layout, body, options);
  };
  return layout.batched ? of.template operator()<true>() : of.template operator()<false>();
}

}  // namespace

template <class T, class Place>
Kernel line_kernel(const std::string& name, const Line& line, const Layout& layout,
                   const LineBody<T, Place>& body, const KernelOptions& options) {
  const std::string type{lockstep::name(lockstep::detail::kType<T>)};
  const std::string key =
      fmt::format("fft.{}.{}.{}.{}.{}", name, type, line.key(), layout.key(), fmt::join(options.group, "x"));
  return cached_kernel(key, [&] {
    return trace<T, Place>(
        fmt::format("primitives.fft.{}.{}{}.{}", name, line.rows ? "rows" : "columns", line.points, type),
        line, layout, body, options);
  });
}

#define LOCKSTEP_INSTANCE(T, Place)                                                     \
  template Kernel line_kernel<T, Place>(const std::string&, const Line&, const Layout&, \
                                        const LineBody<T, Place>&, const KernelOptions&);
LOCKSTEP_INSTANCE(f32, At<3>)
LOCKSTEP_INSTANCE(f64, At<3>)
LOCKSTEP_INSTANCE(f32, Group<3>)
LOCKSTEP_INSTANCE(f64, Group<3>)
#undef LOCKSTEP_INSTANCE

}  // namespace lockstep::primitives::fft
