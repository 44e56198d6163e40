// Kernels of the dynamic closures: Germano's identity for the flux of vorticity, with a Gaussian test filter
// of twice the width.
#include <fmt/format.h>

#include "flow/les/kernels.hpp"
#include "flow/les/mode.hpp"
#include "flow/les/rates.hpp"

namespace lockstep::flow {

namespace {

template <class T>
std::string dynamic_name(const char* what, const Terms& terms) {
  return fmt::format("flow.{}.{}.{}", what, name(terms.closure), name(detail::kType<T>));
}

template <class T>
Val<T> test_filter(Parameters& p, const Mode<T>& mode) {
  return exp(-(mode.k2 * p.scalar<T>("test_width_2_over_24")));
}

constexpr int kSumLanes = 256;

}  // namespace

template <class T>
Kernel DynamicKernels<T>::products(const Terms& t) {
  return kernel(dynamic_name<T>("germano.products", t), [&](At<3> at, Parameters& p) {
    const auto fields = p.read<T, 3>("fields");
    const auto out = p.write<T, 3>("germano");
    const Val<i32> members = at.extent(2), m = at.z, y = at.y, x = at.x;
    const auto field = [&](Quantity q) { return fields(members * t.field(q) + m, y, x); };
    const Val<T> w = field(Quantity::w), wx = field(Quantity::wx), wy = field(Quantity::wy);
    const Val<T> rate = rate_at<T>(row_of(t.closure).rate, field);
    out(m, y, x) = field(Quantity::u) * w;
    out(members + m, y, x) = field(Quantity::v) * w;
    out(members * 2 + m, y, x) = rate * wx;
    out(members * 3 + m, y, x) = rate * wy;
  });
}

template <class T>
Kernel DynamicKernels<T>::filtered(const Terms& t) {
  return kernel(dynamic_name<T>("germano.filtered", t), [&](At<3> at, Parameters& p) {
    const auto w = p.read<T, 4>("w"), spectra = p.read<T, 4>("germano");
    const auto out = p.write<T, 4>("filtered");
    const Mode<T> mode(p, at.x, at.y);
    const Val<i32> members = at.extent(2), m = at.z, row = at.y;
    const Val<T> filter = test_filter<T>(p, mode), scaled = filter * p.scalar<T>("scale");
    int place = 0;
    for (; place < 4; ++place)
      store_complex<T>(out, scaled * load_complex(spectra, members * place + m, row, mode.ix),
                       members * place + m, row, mode.ix);
    const ComplexVal<T> own = filter * load_complex(w, m, row, mode.ix);
    for (const Quantity q : germano_fields(t))
      store_complex<T>(out, mode.of(q, own), members * place++ + m, row, mode.ix);
  });
}

template <class T>
Kernel DynamicKernels<T>::contract(const Terms& t) {
  return kernel(dynamic_name<T>("germano.contract", t), [&](At<3> at, Parameters& p) {
    const auto from = p.read<T, 3>("filtered");
    const auto pair = p.write<T, 3>("pair");
    const Val<i32> members = at.extent(2), m = at.z, y = at.y, x = at.x;
    const auto field = [&](int place) { return from(members * place + m, y, x); };
    const auto quantity = [&](Quantity q) {
      const std::vector<Quantity> list = germano_fields(t);
      int place = 4;
      for (const Quantity other : list) {
        if (other == q) return field(place);
        ++place;
      }
      return field(place);
    };
    const Val<T> wx = quantity(Quantity::wx), wy = quantity(Quantity::wy), w = quantity(Quantity::w);
    const Val<T> rate = rate_at<T>(row_of(t.closure).rate, quantity);
    const Val<T> own = p.scalar<T>("width_power"), wide = p.scalar<T>("test_power") * rate;
    const Val<T> mx = own * field(2) - wide * wx, my = own * field(3) - wide * wy;
    const Val<T> lx = field(0) - quantity(Quantity::u) * w, ly = field(1) - quantity(Quantity::v) * w;
    pair(m, y, x) = lx * mx + ly * my;
    pair(members + m, y, x) = mx * mx + my * my;
  });
}

template <class T>
Kernel DynamicKernels<T>::local_viscosity(const Terms& t) {
  return kernel(dynamic_name<T>("germano.viscosity", t), [&](At<3> at, Parameters& p) {
    const auto fields = p.read<T, 3>("fields"), pair = p.read<T, 3>("pair");
    const auto eddy = p.write<T, 3>("eddy");
    const Val<i32> members = at.extent(2), m = at.z, y = at.y, x = at.x;
    const Val<T> ax = p.scalar<T>("mean_x"), ay = p.scalar<T>("mean_y");
    const auto mean = [&](int which) {
      const auto row = [&](int dy) {
        const auto value = [&](int dx) { return pair.periodic()(members * which + m, y + dy, x + dx); };
        const Val<T> neighbours = value(-1) + value(1);
        return ax * neighbours + (T(1) - T(2) * ax) * value(0);
      };
      const Val<T> neighbours = row(-1) + row(1);
      return ay * neighbours + (T(1) - T(2) * ay) * row(0);
    };
    const auto field = [&](Quantity q) { return fields(members * t.field(q) + m, y, x); };
    const Val<T> rate = rate_at<T>(row_of(t.closure).rate, field);
    const Val<T> above = mean(0), below = mean(1);
    const Val<T> clipped =
        select(below > T(0), min(max(above / below, T(0)), T(kLargestLocal)), Val<T>(T(0)));
    eddy(m, y, x) = p.scalar<T>("width_power") * clipped * rate;
  });
}

template <class T>
Kernel DynamicKernels<T>::partial_sums() {
  const KernelOptions options{{kSumLanes, 1, 1}, 0};
  return kernel(
      fmt::format("flow.germano.sums.{}", name(detail::kType<T>)),
      [](Group<2> g, Parameters& p) {
        const auto pair = p.read<T, 2>("pair");  // (2 members, points)
        const auto sums = p.write<T, 3>("sums");
        const Val<i32> chunk = g.id(0), m = g.id(1), members = g.count(1), points = pair.size(1);
        for (int k = 0; k < 2; ++k) {
          Var<T> sum = T(0);
          for_(0, int(kChunk) / kSumLanes, [&](Val<i32> r) {
            const Val<i32> at = chunk * int(kChunk) + r * kSumLanes + g.lane();
            if_(at < points, [&] { sum += pair(members * k + m, at); });
          });
          const Val<T> all = group_sum(Val<T>(sum));
          if_(g.lane() == 0, [&] { sums(m, chunk, k) = all; });
        }
      },
      options);
}

template <class T>
Kernel DynamicKernels<T>::coefficient() {
  return kernel(fmt::format("flow.germano.coefficient.{}", name(detail::kType<T>)),
                [](At<1> at, Parameters& p) {
                  const auto sums = p.read<T, 3>("sums");
                  const auto out = p.write<T, 1>("coefficient");
                  Var<T> above = T(0), below = T(0);
                  for_(0, sums.size(1), [&](Val<i32> chunk) {
                    above += sums(at.x, chunk, 0);
                    below += sums(at.x, chunk, 1);
                  });
                  out[at] = select(below > T(0), max(above / below, T(0)), Val<T>(T(0)));
                });
}

template struct DynamicKernels<f32>;
template struct DynamicKernels<f64>;

}  // namespace lockstep::flow
