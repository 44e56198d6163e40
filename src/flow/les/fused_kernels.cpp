#include <fmt/format.h>

#include <bit>
#include <limits>
#include <span>

#include "flow/les/fused.hpp"
#include "flow/les/update.hpp"
#include "primitives/fft/block_fft.hpp"

namespace lockstep::flow {

namespace fft = primitives::fft;

namespace {
constexpr int kLongPoints = 16;  // of a column of 8192 in a lane
}

int fused_fields(const KernelForm& form) { return form.terms.closure == Closure::none ? 2 : 3; }

bool is_fused(const Modes& modes, const KernelForm& form, Storage storage, const Limits& limits) {
  const bool long_lines = storage == Storage::f32 && limits.group_lanes >= 8192 / kLongPoints;
  const int64_t longest = long_lines ? 8192 : 4096;
  const auto served = [&](int64_t n) { return n >= 16 && n <= longest && std::has_single_bit(uint64_t(n)); };
  const Terms& t = form.terms;
  return served(modes.points_x) && served(modes.points_y) && !t.flux &&
         (t.closure == Closure::none ||
          (t.closure == Closure::smagorinsky && t.form == ClosureForm::divergence));
}

const variants::Computation& step_computation() {
  static const variants::Computation computation(
      {.name = "flow.step", .variants = {"vectors", "groups", "paired_groups"}, .axes = {"points"}});
  return computation;
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
  return fft::FftExchange<T>::bytes({s.length, s.lanes, s.radices}, s.lines, s.buffers, s.planes, s.sets);
}

/// Where a limit requests it: fewer lines in a group, then less memory at the price of barriers.
template <class T>
void fit(LineSpread& s, const Limits& limits) {
  while (s.lines > 1 &&
         (s.lanes * s.lines > limits.group_lanes || exchange_bytes<T>(s) > limits.shared_bytes))
    s.lines /= 2;
  for (int* part : {&s.planes, &s.buffers, &s.sets})
    if (exchange_bytes<T>(s) > limits.shared_bytes) *part = 1;
}

enum class Lanes { vectors, groups, paired_groups };
Lanes lanes_of(const Modes& modes, const DeviceInfo& device, std::string_view asked) {
  const variants::Axis points{"points", double(modes.points_x) * double(modes.points_y)};
  return Lanes(
      variants::choose(step_computation(), device, Numerics::exact, {{}, {&points, 1}}, asked).variant);
}

template <class T>
FusedShape shape_of(const Modes& modes, const DeviceInfo& device, std::string_view variant) {
  FusedShape shape;
  shape.modes = modes;
  const int64_t nx = modes.points_x, ny = modes.points_y;
  const Lanes how = lanes_of(modes, device, variant);
  if (how == Lanes::vectors) {
    // Vectors of neighbouring lines; two buffers, so that no value outlives a barrier.
    shape.rows = spread_of(nx, 8, 8);
    shape.columns = spread_of(ny, 8, 8);
    shape.rows.buffers = shape.columns.buffers = 2;
    shape.pad = 64 / (2 * int(sizeof(T)));
  } else {
    // As many points a lane as registers hold (two lines of them in rows, two and the states in columns), as few lanes a
    // group as keep neighbouring rows in one access, and one column, so that multiprocessors have equal shares. Two
    // transforms at once wait for the same barriers.
    const bool wide = sizeof(T) == 8;
    const int row_points = nx <= 256             ? 8
                           : nx == 1024 && !wide ? 32
                           : nx > 4096           ? 32
                                                 : 16,
              column_points = ny <= 256            ? 4
                              : ny <= 1024 || wide ? 8
                                                   : 16;
    shape.rows = spread_of(nx, row_points, nx <= 512 ? 4 : 8);
    shape.columns = spread_of(ny, column_points, 1);
    shape.turned = true;
    shape.paired = how == Lanes::paired_groups;  // a buffer more, of which WebGPU has few
    const int most = row_points == 16 && !wide ? 512 : 256;
    while (shape.rows.lines > 1 && shape.rows.lanes * shape.rows.lines > most) shape.rows.lines /= 2;
    shape.rows.sets = nx <= 4096 ? 2 : 1;
    shape.columns.sets = ny <= 4096 ? 2 : 1;
    shape.early = shape.columns.lanes <= 256;
    if (nx <= 512) shape.rows.buffers = 2;
    if (ny <= 1024) shape.columns.buffers = 2;
  }
  shape.rows.lines = int(std::min<int64_t>(shape.rows.lines, ny));
  fit<T>(shape.rows, device.limits);
  fit<T>(shape.columns, device.limits);
  return shape;
}

}  // namespace

FusedShape fused_shape(const Modes& modes, Storage storage, const DeviceInfo& device,
                       std::string_view variant) {
  return storage == Storage::f64 ? shape_of<f64>(modes, device, variant)
                                 : shape_of<f32>(modes, device, variant);
}
bool is_turned(const Modes& modes, const KernelForm& form, Storage storage, const DeviceInfo& device,
               std::string_view variant) {
  return is_fused(modes, form, storage, device.limits) && fused_shape(modes, storage, device, variant).turned;
}

namespace {

/// A group of lines: lane = line + lines * t, and lane t holds the elements t + lanes * j of its line.
template <class T>
class GroupLines {
 public:
  GroupLines(const LineSpread& spread, const Group<3>& g, const Grid<T, 2>& roots)
      : spread_(spread),
        fft_(spread.length, spread.lanes, spread.radices),
        exchange_(fft_, spread.lines, fft::FftExchange<T>::Lines::interleaved, spread.buffers, spread.planes,
                  spread.sets),
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
  /// Calls make(set) for so many sets, which makes it, and transforms it: as many at once as the shape says.
  template <class Make, class Done>
  void transform(FftDirection direction, std::span<fft::ComplexValues<T>> sets, const Make& make,
                 const Done& done) {
    for (size_t first = 0; first < sets.size(); first += size_t(spread_.sets)) {
      const size_t last = std::min(sets.size(), first + size_t(spread_.sets));
      std::vector<fft::ComplexValues<T>*> now;
      for (size_t s = first; s < last; ++s) {
        make(int(s), sets[s]);
        now.push_back(&sets[s]);
      }
      fft::block_fft<T>(fft_, direction, std::span<fft::ComplexValues<T>* const>(now), t, exchange_,
                        fft::memory_roots<T>(roots_));
      for (size_t s = first; s < last; ++s) done(int(s), sets[s]);
    }
  }

 private:
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

/// Fields of y, as columns write and rows read them: psi, psi_y and, with a closure, psi_yy.
template <class T>
class FieldsOut {
 public:
  FieldsOut(Parameters& p, const FusedShape& shape, const Val<i32>& members, int count)
      : paired_(shape.paired), members_(members), fields_(p.write<T, 4>("fields")) {
    if (paired_ && count > 2) bent_.emplace(p.write<T, 4>("bent"));
  }
  /// Field f of `sets` at place j; of a pair both with the second.
  void store(int f, const std::vector<fft::ComplexValues<T>>& sets, int j, const Val<i32>& m,
             const Val<i32>& ix, const Val<i32>& y) const {
    const fft::Complex<T>& a = sets[size_t(f)][size_t(j)];
    if (!paired_ || f == 2)
      return store_complex<T>(paired_ ? *bent_ : fields_, {a.re, a.im}, paired_ ? m : members_ * f + m, ix,
                              y);
    const fft::Complex<T>& first = sets[0][size_t(j)];
    if (f == 1) fields_.template store_wide<4>(Wide<T, 4>{{first.re, first.im, a.re, a.im}}, m, ix, y, 0);
  }

 private:
  bool paired_;
  Val<i32> members_;
  Out<T, 4> fields_;
  std::optional<Out<T, 4>> bent_;
};
template <class T>
class FieldsIn {
 public:
  FieldsIn(Parameters& p, const FusedShape& shape, const Val<i32>& members, int count)
      : paired_(shape.paired), members_(members), fields_(p.read<T, 4>("fields")) {
    if (paired_ && count > 2) bent_.emplace(p.read<T, 4>("bent"));
  }
  /// `count` fields at (kx, y).
  std::vector<ComplexVal<T>> load(int count, const Val<i32>& m, const Val<i32>& ix, const Val<i32>& y) const {
    std::vector<ComplexVal<T>> all;
    if (paired_) {
      const auto both = fields_.template wide<4>(m, ix, y, 0);
      all = {{both[0], both[1]}, {both[2], both[3]}};
      if (count > 2) all.push_back(load_complex(*bent_, m, ix, y));
    } else {
      for (int f = 0; f < count; ++f) all.push_back(load_complex(fields_, members_ * f + m, ix, y));
    }
    return all;
  }

 private:
  bool paired_;
  Val<i32> members_;
  Grid<T, 4> fields_;
  std::optional<Grid<T, 4>> bent_;
};

/// The number of a group among those of all ranks.
Val<i32> group_number(const Group<3>& g, Parameters& p, const KernelForm& form) {
  const Val<i32> own = g.id(0);
  return form.slab ? own + p.scalar<i32>("first_group") : own;
}

/// The columns of a group: what the kernels over columns have in common.
template <class T>
class Columns {
 public:
  Columns(const Group<3>& g, Parameters& p, const KernelForm& form, const FusedShape& shape)
      : shape_(shape),
        unit_(p),
        lines_(shape.columns, g, p.read<T, 2>("roots_y")),
        members(g.count(2)),
        m(g.id(2)),
        ix_(group_number(g, p, form) * shape.columns.lines + lines_.line),
        all_mine_(shape.modes.columns() % shape.columns.lines == 0),
        mine_(ix_ < int(shape.modes.columns())),
        ix(min(ix_, int(shape.modes.columns() - 1))) {}

  /// Transforms of Z and its partner. `before` is done between the loads and the transforms.
  template <class Before>
  void load_products(const Grid<T, 4>& products, const Before& before) {
    lines_.transform(
        FftDirection::forward, products_,
        [&](int set, fft::ComplexValues<T>& x) {
          for (int j = 0; j < lines_.points(); ++j) {
            const ComplexVal<T> z = load_complex(products, members * set + m, ix, lines_.element(j));
            x.push_back({z.re, z.im});
          }
          if (set == 0) before();
        },
        [](int, const fft::ComplexValues<T>&) {});
  }
  /// The products' coefficients at place j.
  auto products(int j) const {
    const fft::Complex<T>&z = products_[0][size_t(j)], &w = products_[1][size_t(j)];
    return [z, w](Product which) {
      if (which == Product::stress_p) return T(0.5) * ComplexVal<T>{z.re + w.re, z.im + w.im};
      return T(0.5) * ComplexVal<T>{z.im - w.im, w.re - z.re};
    };
  }

  /// Whether place j has a kept mode in some lane.
  int places() const { return lines_.points(); }
  bool kept(int j) const { return !lines_.none_kept(j, shape_.modes.kept_y); }
  /// A row of the state that lanes may read regardless of their mode.
  Val<i32> safe_row(int j) const {
    return lines_.all_kept(j, shape_.modes.kept_y) ? row(j) : select(inside(j), row(j), Val<i32>(0));
  }
  /// body(mode, row) where the lane's mode of place j is kept.
  template <class Body>
  void at_mode(int j, const Body& body) const {
    const auto run = [&] { body(Mode<T>(unit_, ix, lines_.wavenumber(j)), row(j)); };
    if (always(j))
      run();
    else
      if_(inside(j), run);
  }

  /// psi, psi_y (and psi_yy) of the states w(j, mode, row), to memory as fields of y.
  template <class State>
  void store_fields(Parameters& p, int count, const State& state) {
    const FieldsOut<T> fields(p, shape_, members, count);
    fft::ComplexValues<T> psi;
    for (int j = 0; j < places(); ++j) {
      if (!kept(j)) {
        psi.push_back(zero<T>());
        continue;
      }
      psi.push_back(where<T>(always(j), inside(j), [&] {
        const Mode<T> mode(unit_, ix, lines_.wavenumber(j));
        const ComplexVal<T> w = mode.over_k2 * state(j, mode, row(j));
        return fft::Complex<T>{w.re, w.im};
      }));
    }
    std::vector<fft::ComplexValues<T>> sets(static_cast<size_t>(count));
    lines_.transform(
        FftDirection::inverse, sets,
        [&](int f, fft::ComplexValues<T>& x) {
          for (int j = 0; j < places(); ++j) {
            const fft::Complex<T>& a = psi[size_t(j)];
            const Val<T> ky = unit_.y * cast<T>(lines_.wavenumber(j));
            if (a.zero || f == 0)
              x.push_back(a);
            else if (f == 1)
              x.push_back({-(ky * a.im), ky * a.re});
            else
              x.push_back({-(ky * ky) * a.re, -(ky * ky) * a.im});
          }
        },
        [&](int f, const fft::ComplexValues<T>&) {
          const auto store = [&] {
            for (int j = 0; j < places(); ++j) fields.store(f, sets, j, m, ix, lines_.element(j));
          };
          if (all_mine_)
            store();
          else
            if_(mine_, store);
        });
  }

 private:
  bool always(int j) const { return all_mine_ && lines_.all_kept(j, shape_.modes.kept_y); }
  Val<bool> inside(int j) const {
    const Val<bool> in_band = abs(lines_.wavenumber(j)) <= int(shape_.modes.kept_y);
    return lines_.all_kept(j, shape_.modes.kept_y) ? mine_ : mine_ && in_band;
  }
  Val<i32> row(int j) const {
    const Val<i32> iy = lines_.wavenumber(j);
    return select(iy < 0, iy + int(shape_.modes.rows()), iy);
  }

  const FusedShape& shape_;
  Units<T> unit_;
  GroupLines<T> lines_;
  std::vector<fft::ComplexValues<T>> products_{2};

 public:
  Val<i32> members, m;

 private:
  Val<i32> ix_;
  bool all_mine_;
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
        group_(group_number(g, p, form)),
        y_(group_ * shape.rows.lines + lines_.line),
        fields_(p, shape, members_, fused_fields(form)) {}

  /// u + i v and, with a closure, S11 + i S12 at points.
  void load() {
    const bool closed = form_.terms.closure != Closure::none;
    at_points_.resize(closed ? 2 : 1);
    lines_.transform(
        FftDirection::inverse, at_points_,
        [&](int set, fft::ComplexValues<T>& x) {
          for (int j = 0; j < lines_.points(); ++j)
            x.push_back(lines_.none_kept(j, kept_) ? zero<T>() : packed(set == 1, j));
        },
        [](int, const fft::ComplexValues<T>&) {});
  }

  /// The largest |u| and |v| of the group; a NaN counts as infinite, since the maximum would drop it.
  void measure(const Group<3>& g, const Out<T, 3>& speeds) const {
    for (int c = 0; c < 2; ++c) {
      Val<T> most = T(0);
      for (const fft::Complex<T>& x : at_points_[0]) {
        const Val<T> speed = abs(c == 0 ? x.re : x.im), huge = std::numeric_limits<T>::max();
        most = max(most, select(speed <= huge, speed, Val<T>(std::numeric_limits<T>::infinity())));
      }
      const Val<T> all = group_max(most);
      if_(g.lane() == 0, [&] { speeds(m_, group_, c) = all; });
    }
  }

  /// P + i Q at points, and its transform.
  void products(Parameters& p, const Out<T, 4>& products) {
    const bool closed = form_.terms.closure != Closure::none;
    const Val<T> power = closed ? p.scalar<T>("width_power") : Val<T>(T(0));
    fft::ComplexValues<T> z;
    const auto stresses = [&](int, fft::ComplexValues<T>& to) {
      for (int j = 0; j < lines_.points(); ++j) {
        const Val<T> u = at_points_[0][size_t(j)].re, v = at_points_[0][size_t(j)].im;
        Val<T> stress_p = u * v, stress_q = u * u - v * v;
        if (closed) {
          const Val<T> s11 = at_points_[1][size_t(j)].re, s12 = at_points_[1][size_t(j)].im;
          const Val<T> nu_t = power * (T(2) * sqrt(s11 * s11 + s12 * s12));
          stress_p = fma(T(-2) * nu_t, s12, stress_p);
          stress_q = fma(T(-4) * nu_t, s11, stress_q);
        }
        to.push_back({stress_p, stress_q});
      }
    };
    lines_.transform(FftDirection::forward, std::span(&z, 1), stresses,
                     [](int, const fft::ComplexValues<T>&) {});
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
  /// u + i v or, `strain`, S11 + i S12 at the wavenumber of place j: reads are clamped to where there is something.
  fft::Complex<T> packed(bool strain, int j) const {
    const Val<i32> k = lines_.wavenumber(j);
    const bool negative = lines_.low(j) > kept_, all = lines_.all_kept(j, kept_);
    const Val<i32> size = negative ? -k : k, from = all ? size : min(size, int(kept_));
    const Val<T> kx = unit_x_ * cast<T>(k);
    std::vector<ComplexVal<T>> fields = fields_.load(strain ? 3 : 2, m_, from, y_);
    if (j == 0)
      for (ComplexVal<T>& a : fields) a.im = select(k == 0, Val<T>(T(0)), a.im);
    const ComplexVal<T>&psi = fields[0], &psi_y = fields[1];
    const ComplexVal<T> bent = kx * psi;
    ComplexVal<T> a = psi_y + bent;
    if (strain) {
      const ComplexVal<T>& psi_yy = fields[2];
      const ComplexVal<T> q{fma(kx, psi_y.re, T(0.5) * fma(kx, bent.re, psi_yy.re)),
                            fma(kx, psi_y.im, T(0.5) * fma(kx, bent.im, psi_yy.im))};
      a = {negative ? q.im : -q.im, q.re};
    } else if (negative) {
      a.im = -a.im;
    }
    if (all) return {a.re, a.im};
    const Val<bool> inside = size <= int(kept_);
    return {select(inside, a.re, Val<T>(T(0))), select(inside, a.im, Val<T>(T(0)))};
  }

  const KernelForm& form_;
  int64_t kept_;
  GroupLines<T> lines_;
  Val<T> unit_x_;
  Val<i32> members_, m_, group_, y_;
  FieldsIn<T> fields_;
  std::vector<fft::ComplexValues<T>> at_points_;
};

}  // namespace

template <class T>
Kernel FusedKernels<T>::derive(const KernelForm& form, const FusedShape& shape) {
  return kernel(
      fused_name<T>("derive", form, shape.columns),
      [&](Group<3> g, Parameters& p) {
        const auto w = p.read<T, 4>("w");
        Columns<T> columns(g, p, form, shape);
        columns.store_fields(p, fused_fields(form), [&](int, const Mode<T>&, const Val<i32>& row) {
          return load_state(form.turned, w, columns.m, row, columns.ix);
        });
      },
      GroupLines<T>::options(shape.columns));
}

template <class T>
Kernel FusedKernels<T>::rows(const KernelForm& form, const FusedShape& shape, bool measuring) {
  return kernel(
      fused_name<T>(measuring ? "rows.measured" : "rows", form, shape.rows),
      [&](Group<3> g, Parameters& p) {
        const auto products = p.write<T, 4>("products");
        Rows<T> rows(g, p, form, shape);
        rows.load();
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
        Columns<T> columns(g, p, form, shape);
        StageUpdate<T> update(p, form, kind, columns.m);
        std::vector<EarlyStates<T>> early(size_t(columns.places()));
        columns.load_products(products, [&] {
          for (int j = 0; j < columns.places() && shape.early; ++j)
            if (columns.kept(j)) early[size_t(j)] = update.load_early(columns.safe_row(j), columns.ix);
        });
        columns.store_fields(p, fused_fields(form), [&](int j, const Mode<T>& mode, const Val<i32>& row) {
          return update(mode, row, columns.products(j), &early[size_t(j)]);
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
        Columns<T> columns(g, p, form, shape);
        const RightHandSide<T> rhs(p, form);
        columns.load_products(products, [] {});
        for (int j = 0; j < columns.places(); ++j) {
          if (!columns.kept(j)) continue;
          columns.at_mode(j, [&](const Mode<T>& mode, const Val<i32>& row) {
            store_state<T>(form.turned, out,
                           rhs.nonlinear(mode, columns.products(j)) +
                               rhs.linear(mode, load_state(form.turned, w, columns.m, row, columns.ix)),
                           columns.m, row, columns.ix);
          });
        }
      },
      GroupLines<T>::options(shape.columns));
}

template struct FusedKernels<f32>;
template struct FusedKernels<f64>;

}  // namespace lockstep::flow
