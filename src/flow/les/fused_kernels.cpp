#include <fmt/format.h>

#include <bit>
#include <limits>

#include "flow/les/fused.hpp"
#include "flow/les/update.hpp"
#include "primitives/fft/block_fft.hpp"

namespace lockstep::flow {

namespace fft = primitives::fft;

int fused_fields(const KernelForm& form) { return form.terms.closure == Closure::none ? 2 : 3; }

bool is_fused(const Modes& modes, const KernelForm& form) {
  const auto served = [](int64_t n) { return n >= 16 && n <= 4096 && std::has_single_bit(uint64_t(n)); };
  const Terms& t = form.terms;
  return served(modes.points_x) && served(modes.points_y) && !t.flux &&
         (t.closure == Closure::none ||
          (t.closure == Closure::smagorinsky && t.form == ClosureForm::divergence));
}

namespace {

/// `points` of a line in each lane, radices up to that.
LineSpread spread_of(int64_t length, int points, int lines) {
  LineSpread s;
  s.length = int(length);
  s.radices = fft::radices(fft::Stages(length), points);
  s.lanes = int(length) / std::max(s.radices.front(), std::min(points, int(length) / 4));
  s.lines = lines;
  return s;
}

template <class T>
int64_t exchange_bytes(const LineSpread& s) {
  return fft::FftExchange<T>::bytes({s.length, s.lanes, s.radices}, s.lines, s.buffers, s.planes);
}

/// Fewer lines in a group, then half the memory, where a limit asks for it.
template <class T>
void fit(LineSpread& s, const Limits& limits) {
  while (s.lines > 1 &&
         (s.lanes * s.lines > limits.group_lanes || exchange_bytes<T>(s) > limits.shared_bytes))
    s.lines /= 2;
  if (exchange_bytes<T>(s) > limits.shared_bytes) s.planes = 1;
}

std::optional<DeviceKind> chosen_kind;

template <class T>
FusedShape shape_of(const Modes& modes, const DeviceInfo& device) {
  FusedShape shape;
  shape.modes = modes;
  const int64_t nx = modes.points_x, ny = modes.points_y;
  const DeviceKind kind = chosen_kind.value_or(device.kind);
  if (kind == DeviceKind::cpu || kind == DeviceKind::interp) {
    // Vectors of neighbouring lines; two buffers, so that no value outlives a barrier.
    shape.rows = spread_of(nx, 8, 8);
    shape.columns = spread_of(ny, 8, 8);
    shape.rows.buffers = shape.columns.buffers = 2;
  } else {
    // Two lines of 16 f64 a lane fill the registers; 32 points spare the lines of 1024 an exchange.
    const bool wide = sizeof(T) == 8;
    const int row_points = nx <= 256 ? 8 : nx == 1024 && !wide ? 32 : 16;
    shape.rows = spread_of(nx, row_points, nx <= 256 ? 4 : wide ? 4 : 8);
    shape.columns = spread_of(ny, ny <= 256 ? 4 : 16, ny <= 256 ? 1 : ny <= 1024 ? 2 : 4);
  }
  shape.rows.lines = int(std::min<int64_t>(shape.rows.lines, ny));
  fit<T>(shape.rows, device.limits);
  fit<T>(shape.columns, device.limits);
  return shape;
}

}  // namespace

void set_fused_shapes_of(std::optional<DeviceKind> kind) { chosen_kind = kind; }
FusedShape fused_shape(const Modes& modes, Storage storage, const DeviceInfo& device) {
  return storage == Storage::f64 ? shape_of<f64>(modes, device) : shape_of<f32>(modes, device);
}

namespace {

/// A group of lines: lane = line + lines * t, and lane t holds the elements t + lanes * j of its line.
template <class T>
class GroupLines {
 public:
  GroupLines(const LineSpread& spread, const Group<3>& g, const Grid<T, 2>& roots)
      : spread_(spread),
        fft_(spread.length, spread.lanes, spread.radices),
        exchange_(fft_, spread.lines, fft::FftExchange<T>::Lines::interleaved, spread.buffers, spread.planes),
        roots_(roots),
        line(g.local(0)),
        t(g.local(1)) {
    exchange_.place(line);
  }
  static KernelOptions options(const LineSpread& s) { return {{s.lines, s.lanes, 1}, 0}; }

  int64_t length() const { return spread_.length; }
  int points() const { return fft_.points(); }
  int64_t low(int j) const { return int64_t(spread_.lanes) * j; }
  int64_t high(int j) const { return low(j) + spread_.lanes - 1; }
  Val<i32> element(int j) const { return t + spread_.lanes * j; }
  /// Coefficients |k| <= kept: whether all lanes of place j have one, or none.
  bool all_kept(int j, int64_t kept) const { return high(j) <= kept || low(j) >= spread_.length - kept; }
  bool none_kept(int j, int64_t kept) const { return low(j) > kept && high(j) < spread_.length - kept; }
  /// The signed wavenumber of place j.
  Val<i32> wavenumber(int j) const {
    const int n = spread_.length;
    if (high(j) < n / 2) return element(j);
    if (low(j) >= n / 2) return element(j) - n;
    return select(element(j) < n / 2, element(j), element(j) - n);
  }
  void forward(fft::ComplexValues<T>& x) { run(FftDirection::forward, x); }
  void inverse(fft::ComplexValues<T>& x) { run(FftDirection::inverse, x); }

 private:
  void run(FftDirection direction, fft::ComplexValues<T>& x) {
    fft::block_fft<T>(fft_, direction, x, t, exchange_, fft::memory_roots<T>(roots_));
  }
  LineSpread spread_;
  fft::BlockFft fft_;
  fft::FftExchange<T> exchange_;
  Grid<T, 2> roots_;

 public:
  Val<i32> line, t;
};

template <class T>
std::string fused_name(const std::string& what, const KernelForm& form, const LineSpread& s) {
  return fmt::format("flow.fused.{}.{}.{}.{}", what, text(form), s.length, name(detail::kType<T>));
}

template <class T>
fft::Complex<T> zero() {
  return {Val<T>(T(0)), Val<T>(T(0)), true};
}
/// value() where `inside`, else 0.
template <class T, class Value>
fft::Complex<T> where(bool known, const Val<bool>& inside, Value value) {
  if (known) return value();
  Var<T> re = Val<T>(T(0)), im = Val<T>(T(0));
  if_(inside, [&] {
    const fft::Complex<T> a = value();
    re = a.re;
    im = a.im;
  });
  return {Val<T>(re), Val<T>(im)};
}

/// The columns of a group: what the kernels over columns have in common.
template <class T>
class Columns {
 public:
  Columns(const Group<3>& g, Parameters& p, const FusedShape& shape)
      : shape_(shape),
        unit_(p),
        lines_(shape.columns, g, p.read<T, 2>("roots_y")),
        members(g.count(2)),
        m(g.id(2)),
        ix_(g.id(0) * shape.columns.lines + lines_.line),
        mine_(ix_ < int(shape.modes.columns())),
        ix(min(ix_, int(shape.modes.columns() - 1))) {}

  /// Transforms of Z and its partner.
  void load_products(const Grid<T, 4>& products) {
    for (auto* list : {&sum_, &difference_}) {
      const Val<i32> at = list == &sum_ ? m : members + m;
      for (int j = 0; j < lines_.points(); ++j) {
        const ComplexVal<T> z = load_complex(products, at, ix, lines_.element(j));
        list->push_back({z.re, z.im});
      }
      lines_.forward(*list);
    }
  }
  /// The products' coefficients at place j.
  auto products(int j) const {
    const fft::Complex<T>&z = sum_[size_t(j)], &w = difference_[size_t(j)];
    return [z, w](Product which) {
      if (which == Product::stress_p) return T(0.5) * ComplexVal<T>{z.re + w.re, z.im + w.im};
      return T(0.5) * ComplexVal<T>{z.im - w.im, w.re - z.re};
    };
  }

  /// Calls body(j, mode, row) for the lane's kept modes.
  template <class Body>
  void for_modes(const Body& body) const {
    const int64_t kept = shape_.modes.kept_y;
    for (int j = 0; j < lines_.points(); ++j) {
      if (lines_.none_kept(j, kept)) continue;
      const Val<i32> iy = lines_.wavenumber(j);
      Val<bool> inside = mine_;
      if (!lines_.all_kept(j, kept)) inside = inside && abs(iy) <= int(kept);
      if_(inside,
          [&] { body(j, Mode<T>(unit_, ix, iy), select(iy < 0, iy + int(shape_.modes.rows()), iy)); });
    }
  }

  /// psi, psi_y (and psi_yy) of the states w(j, mode, row), to memory as fields of y.
  template <class State>
  void store_fields(const Out<T, 4>& fields, int count, const State& state) {
    const int64_t kept = shape_.modes.kept_y;
    fft::ComplexValues<T> psi;
    for (int j = 0; j < lines_.points(); ++j) {
      if (lines_.none_kept(j, kept)) {
        psi.push_back(zero<T>());
        continue;
      }
      const Val<i32> iy = lines_.wavenumber(j);
      Val<bool> inside = mine_;
      if (!lines_.all_kept(j, kept)) inside = inside && abs(iy) <= int(kept);
      psi.push_back(where<T>(false, inside, [&] {
        const Mode<T> mode(unit_, ix, iy);
        const ComplexVal<T> w =
            mode.over_k2 * state(j, mode, select(iy < 0, iy + int(shape_.modes.rows()), iy));
        return fft::Complex<T>{w.re, w.im};
      }));
    }
    for (int f = 0; f < count; ++f) {
      fft::ComplexValues<T> x;
      for (int j = 0; j < lines_.points(); ++j) {
        const fft::Complex<T>& a = psi[size_t(j)];
        if (a.zero || f == 0) {
          x.push_back(a);
          continue;
        }
        const Val<T> ky = unit_.y * cast<T>(lines_.wavenumber(j));
        if (f == 1)
          x.push_back({-(ky * a.im), ky * a.re});
        else
          x.push_back({-(ky * ky) * a.re, -(ky * ky) * a.im});
      }
      lines_.inverse(x);
      if_(mine_, [&] {
        for (int j = 0; j < lines_.points(); ++j)
          store_complex<T>(fields, ComplexVal<T>{x[size_t(j)].re, x[size_t(j)].im}, members * f + m, ix,
                           lines_.element(j));
      });
    }
  }

 private:
  const FusedShape& shape_;
  Units<T> unit_;
  GroupLines<T> lines_;
  fft::ComplexValues<T> sum_, difference_;

 public:
  Val<i32> members, m;

 private:
  Val<i32> ix_;
  Val<bool> mine_;

 public:
  Val<i32> ix;
};

/// The rows of a group.
template <class T>
class Rows {
 public:
  Rows(const Group<3>& g, Parameters& p, const KernelForm& form, const FusedShape& shape)
      : form_(form),
        kept_(shape.modes.kept_x),
        lines_(shape.rows, g, p.read<T, 2>("roots_x")),
        unit_x_(p.scalar<T>("unit_x")),
        members_(g.count(2)),
        m_(g.id(2)),
        y_(g.id(0) * shape.rows.lines + lines_.line) {}

  /// u + i v and, with a closure, S11 + i S12 at points.
  void load(const Grid<T, 4>& fields) {
    const bool closed = form_.terms.closure != Closure::none;
    for (int j = 0; j < lines_.points(); ++j) {
      if (lines_.none_kept(j, kept_)) {
        velocity_.push_back(zero<T>());
        strain_.push_back(zero<T>());
        continue;
      }
      const Val<i32> k = lines_.wavenumber(j);
      const bool negative = lines_.low(j) > kept_;
      const Val<T> kx = unit_x_ * cast<T>(k);
      const Val<bool> inside = abs(k) <= int(kept_);
      const auto field = [&](int number) {
        return where<T>(lines_.all_kept(j, kept_), inside, [&] {
          const ComplexVal<T> a = load_complex(fields, members_ * number + m_, negative ? -k : k, y_);
          return fft::Complex<T>{a.re, j == 0 ? select(k == 0, Val<T>(T(0)), a.im) : a.im};
        });
      };
      const fft::Complex<T> psi = field(0), psi_y = field(1);
      const fft::Complex<T> bent{kx * psi.re, kx * psi.im};
      const fft::Complex<T> p{psi_y.re + bent.re, psi_y.im + bent.im};
      velocity_.push_back({p.re, negative ? -p.im : p.im});
      if (!closed) continue;
      const fft::Complex<T> psi_yy = field(2);
      const fft::Complex<T> q{fma(kx, psi_y.re, T(0.5) * fma(kx, bent.re, psi_yy.re)),
                              fma(kx, psi_y.im, T(0.5) * fma(kx, bent.im, psi_yy.im))};
      strain_.push_back({negative ? q.im : -q.im, q.re});
    }
    lines_.inverse(velocity_);
    if (closed) lines_.inverse(strain_);
  }

  /// The largest |u| and |v| of the group; a NaN counts as infinite, since the maximum would drop it.
  void measure(const Group<3>& g, const Out<T, 3>& speeds) const {
    for (int c = 0; c < 2; ++c) {
      Val<T> most = T(0);
      for (const fft::Complex<T>& x : velocity_) {
        const Val<T> speed = abs(c == 0 ? x.re : x.im), huge = std::numeric_limits<T>::max();
        most = max(most, select(speed <= huge, speed, Val<T>(std::numeric_limits<T>::infinity())));
      }
      const Val<T> all = group_max(most);
      if_(g.lane() == 0, [&] { speeds(m_, g.id(0), c) = all; });
    }
  }

  /// P + i Q at points, and its transform.
  void products(Parameters& p, const Out<T, 4>& products) {
    fft::ComplexValues<T> z;
    const bool closed = form_.terms.closure != Closure::none;
    const Val<T> power = closed ? p.scalar<T>("width_power") : Val<T>(T(0));
    for (int j = 0; j < lines_.points(); ++j) {
      const Val<T> u = velocity_[size_t(j)].re, v = velocity_[size_t(j)].im;
      Val<T> stress_p = u * v, stress_q = u * u - v * v;
      if (closed) {
        const Val<T> s11 = strain_[size_t(j)].re, s12 = strain_[size_t(j)].im;
        const Val<T> nu_t = power * (T(2) * sqrt(s11 * s11 + s12 * s12));
        stress_p = fma(T(-2) * nu_t, s12, stress_p);
        stress_q = fma(T(-4) * nu_t, s11, stress_q);
      }
      z.push_back({stress_p, stress_q});
    }
    lines_.forward(z);
    for (int j = 0; j < lines_.points(); ++j) {
      if (lines_.none_kept(j, kept_)) continue;
      const Val<i32> k = lines_.wavenumber(j);
      const ComplexVal<T> a{z[size_t(j)].re, z[size_t(j)].im};
      const auto put = [&](bool known, const Val<bool>& inside, const auto& store) {
        if (known)
          store();
        else
          if_(inside, store);
      };
      if (lines_.low(j) <= kept_)
        put(lines_.high(j) <= kept_, k >= 0 && k <= int(kept_),
            [&] { store_complex<T>(products, a, m_, k, y_); });
      if (j == 0 || lines_.low(j) > kept_ || lines_.high(j) >= lines_.length() - kept_)
        put(j > 0 && lines_.low(j) >= lines_.length() - kept_, k <= 0 && k >= -int(kept_),
            [&] { store_complex<T>(products, ComplexVal<T>{a.re, -a.im}, members_ + m_, -k, y_); });
    }
  }

 private:
  const KernelForm& form_;
  int64_t kept_;
  GroupLines<T> lines_;
  Val<T> unit_x_;
  Val<i32> members_, m_, y_;
  fft::ComplexValues<T> velocity_, strain_;
};

}  // namespace

template <class T>
Kernel FusedKernels<T>::derive(const KernelForm& form, const FusedShape& shape) {
  return kernel(
      fused_name<T>("derive", form, shape.columns),
      [&](Group<3> g, Parameters& p) {
        const auto w = p.read<T, 4>("w");
        const auto fields = p.write<T, 4>("fields");
        Columns<T> columns(g, p, shape);
        columns.store_fields(fields, fused_fields(form), [&](int, const Mode<T>&, const Val<i32>& row) {
          return load_complex(w, columns.m, row, columns.ix);
        });
      },
      GroupLines<T>::options(shape.columns));
}

template <class T>
Kernel FusedKernels<T>::rows(const KernelForm& form, const FusedShape& shape, bool measuring) {
  return kernel(
      fused_name<T>(measuring ? "rows.measured" : "rows", form, shape.rows),
      [&](Group<3> g, Parameters& p) {
        const auto fields = p.read<T, 4>("fields");
        const auto products = p.write<T, 4>("products");
        Rows<T> rows(g, p, form, shape);
        rows.load(fields);
        if (measuring) rows.measure(g, p.write<T, 3>("speeds"));
        rows.products(p, products);
      },
      GroupLines<T>::options(shape.rows));
}

template <class T>
Kernel FusedKernels<T>::advance(const KernelForm& form, StageKind kind, const FusedShape& shape) {
  const std::string what = fmt::format("advance.{}.{}", name(kind.integrator), kind.stage + 1);
  return kernel(
      fused_name<T>(what, form, shape.columns),
      [&](Group<3> g, Parameters& p) {
        const auto products = p.read<T, 4>("products");
        const auto fields = p.write<T, 4>("fields");
        Columns<T> columns(g, p, shape);
        StageUpdate<T> update(p, form, kind, columns.m);
        columns.load_products(products);
        columns.store_fields(fields, fused_fields(form),
                             [&](int j, const Mode<T>& mode, const Val<i32>& row) {
                               return update(mode, row, columns.products(j));
                             });
      },
      GroupLines<T>::options(shape.columns));
}

template <class T>
Kernel FusedKernels<T>::right_hand_side(const KernelForm& form, const FusedShape& shape) {
  return kernel(
      fused_name<T>("rhs", form, shape.columns),
      [&](Group<3> g, Parameters& p) {
        const auto w = p.read<T, 4>("w"), products = p.read<T, 4>("products");
        const auto out = p.write<T, 4>("out");
        Columns<T> columns(g, p, shape);
        const RightHandSide<T> rhs(p, form);
        columns.load_products(products);
        columns.for_modes([&](int j, const Mode<T>& mode, const Val<i32>& row) {
          store_complex<T>(out,
                           rhs.nonlinear(mode, columns.products(j)) +
                               rhs.linear(mode, load_complex(w, columns.m, row, columns.ix)),
                           columns.m, row, columns.ix);
        });
      },
      GroupLines<T>::options(shape.columns));
}

template struct FusedKernels<f32>;
template struct FusedKernels<f64>;

}  // namespace lockstep::flow
