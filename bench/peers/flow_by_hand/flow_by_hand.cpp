#include "flow_by_hand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "pde/language/tracer.hpp"

namespace lockstep::pde {

namespace {

/// A value that is set after it is declared.
template <class T>
class Late {
 public:
  using value_type = T;
  Late() = default;
  Late(const Val<T>& v) : value_(v) {}
  Late(const Var<T>& v) : value_(v) {}
  template <class C>
    requires std::is_arithmetic_v<C>
  Late(C constant) : value_(Val<T>(constant)) {}
  operator Val<T>() const { return value_.value(); }

 private:
  std::optional<Val<T>> value_;
};
/// Parameters: u at levels -1, 0, +1 and p, the gradients of the same, the seeds of momentum and divergence.
constexpr std::array kFields{"u_0", "u_1", "u_2", "p"}, kGradients{"d_u_0", "d_u_1", "d_u_2", "d_p"};
constexpr std::array kSeeds{"seed_momentum", "seed_divergence"};
std::string along(const char* name, size_t axis) { return fmt::format("{}{}", name, char('x' + axis)); }

using F = Late<f32>;
using I = Late<i32>;
using Vars = std::deque<Var<f32>>;

/// Velocity and pressure at a cell and its six neighbours: [channel][axis][0 = below, 1 = above].
struct Stencil7 {
  std::array<F, 4> own;
  std::array<std::array<std::array<F, 2>, 3>, 4> near;
};

class Flow {
 public:
  Flow(Parameters& p, const Group<3>& g, const FusedShape& s)
      : s_(s),
        width_(s.x + 2 * kLeft),
        height_(s.tall() + 4),
        plane_(width_ * height_),
        inner_width_(s.x + 2),
        inner_(inner_width_ * (s.tall() + 2)),
        g_(g),
        staged_(Storage::f32, 4 * 4 * plane_),
        cotangents_(Storage::f32, 2 * 4 * inner_) {
    declare(p);
    place();
    fill(vars_cur_, 4);
    fill(vars_prev_, 4);
    fill(q1_, 4);
    fill(q2_, 4);
    fill(flux2_, 3);
    fill(point_, 3);
    for (int r = 0; r < s_.rows; ++r)
      for (int k = 0; k < 6; ++k) next_[size_t(r)].emplace_back(0.0f);
    for (int k = 0; k < 6; ++k) ring_next_.emplace_back(0.0f);
  }

  void trace() {
    const I first = begin_ - 1;
    for (int k = -1; k <= 1; ++k) fetch(first + k, I(k + 1));
    load_next(first);
    async_wait(0);
    barrier();
    for (int r = 0; r < s_.rows; ++r)
      for (int c = 0; c < 4; ++c) {
        vars_prev_[size_t(r)][size_t(c)] = staged(I(0), c, own_[size_t(r)]);
        vars_cur_[size_t(r)][size_t(c)] = staged(I(1), c, own_[size_t(r)]);
      }
    Var<i32> head(1), half(0);
    for_(first, end_ + 1, 1, [&](I z) {
      async_wait(0);
      barrier();
      for (int k = -1; k <= 2; ++k) slot_[size_t(k + 1)] = (I(head) + (k + 4)) & 3;
      fetch(z + 2, slot_[3]);
      const I write = half, read = 4 * inner_ - write;
      step(z, write, read);
      head = slot_[2];
      half = read;
    });
    for (int k = 0; k < 2; ++k) {
      const Val<f64> total = group_sum(Val<f64>(sums_[size_t(k)]));
      if_(g_.lane() == 0, [&] { partial_->store({k, group_}, total); });
    }
  }

 private:
  static constexpr int kLeft = 4;

  void declare(Parameters& p) {
    for (const char* name : kFields) in_.push_back(p.read(name, Storage::f32, 4));
    for (const char* name : kGradients) out_.push_back(p.write(name, Storage::f32, 4).streaming());
    partial_ = p.write("partial", Storage::f64, 2);
    for (size_t a = 0; a < 3; ++a) n_[a] = p.scalar<i32>(along("n", a));
    chunk_ = p.scalar<i32>("chunk");
    time_ = p.scalar<f32>("kt");
    for (size_t a = 0; a < 3; ++a) k_[a] = p.scalar<f32>(along("k", a));
    for (size_t a = 0; a < 3; ++a) v_[a] = p.scalar<f32>(along("v", a));
    for (size_t k = 0; k < 2; ++k) seed_[k] = p.scalar<f32>(kSeeds[k]);
    sums_.emplace_back(0.0);
    sums_.emplace_back(0.0);
  }

  void fill(std::vector<Vars>& list, int count) {
    list.resize(size_t(s_.rows));
    for (Vars& row : list)
      for (int k = 0; k < count; ++k) row.emplace_back(0.0f);
  }

  void place() {
    const I lane_x = g_.local(0), lane_y = g_.local(1), lane = g_.lane();
    tile_x_ = g_.id(0) * s_.x;
    tile_y_ = g_.id(1) * s_.tall();
    group_ = (g_.id(2) * g_.count(1) + g_.id(1)) * g_.count(0) + g_.id(0);
    begin_ = g_.id(2) * chunk_;
    end_ = min(begin_ + chunk_, n_[2]);
    area_ = n_[0] * n_[1];
    volume_ = area_ * n_[2];
    next_.resize(size_t(s_.rows));
    for (int r = 0; r < s_.rows; ++r) {
      const I row = lane_y * s_.rows + r;
      own_.push_back((row + 2) * width_ + lane_x + kLeft);
      cot_.push_back((row + 1) * inner_width_ + lane_x + 1);
      at_.push_back((tile_y_ + row) * n_[0] + tile_x_ + lane_x);
    }
    // The ring of cells around the tile: its columns left and right, then its rows below and above.
    const int sides = 2 * s_.tall(), all = sides + 2 * s_.x;
    in_ring_ = lane < all;
    const Val<bool> side = lane < sides;
    const I f = lane - sides, column = select(side, select((lane & 1) == 0, I(-1), I(s_.x)), f % s_.x),
            row = select(side, lane / 2, select(f < s_.x, I(-1), I(s_.tall())));
    ring_own_ = (row + 2) * width_ + column + kLeft;
    ring_cot_ = (row + 1) * inner_width_ + column + 1;
    ring_at_ = wrap(tile_y_ + row, n_[1]) * n_[0] + wrap(tile_x_ + column, n_[0]);
    // Copies of 4 cells.
    const int across = width_ / 4, copies = across * height_;
    for (int from = 0; from < copies; from += s_.lanes()) {
      const I p = lane + from, y = p / across, x = (p % across) * 4;
      to_.push_back(y * width_ + x);
      from_.push_back(wrap(tile_y_ + y - 2, n_[1]) * n_[0] + wrap(tile_x_ + x - kLeft, n_[0]));
      copies_.push_back(p < copies);
    }
  }

  static I wrap(const I& c, const I& n) {
    const I up = select(c < 0, c + n, c);
    return select(up < n, up, up - n);
  }

  void fetch(const I& z, const I& slot) {
    const I plane = wrap(z, n_[2]) * area_;
    for (size_t k = 0; k < to_.size(); ++k)
      if_(copies_[k], [&] {
        for (int c = 0; c < 4; ++c) {
          const I to = slot * (4 * plane_) + to_[k] + c * plane_, at = plane + from_[k];
          in_[c == 3 ? 3 : 1].copy_async(staged_, to, c == 3 ? at : I(at + volume_ * c), 4);
        }
      });
    async_commit();
  }

  /// u one step before and after, for the residuals of plane z.
  void load_next(const I& z) {
    const I plane = wrap(z, n_[2]) * area_;
    const auto load = [&](Vars& to, const I& at) {
      for (int k = 0; k < 6; ++k)
        to[size_t(k)] = in_[k < 3 ? 0 : 2].load_at(plane + at + volume_ * (k % 3)).as<f32>();
    };
    for (int r = 0; r < s_.rows; ++r) load(next_[size_t(r)], at_[size_t(r)]);
    if_(in_ring_, [&] { load(ring_next_, ring_at_); });
  }

  F staged(const I& slot, int channel, const I& at) const {
    return staged_.load(slot * (4 * plane_) + at + channel * plane_).as<f32>();
  }
  F cotangent(const I& half, int k, const I& at) const {
    return cotangents_.load(half + at + k * inner_).as<f32>();
  }
  void put_cotangents(const I& half, const I& at, const std::array<F, 4>& q) {
    for (int k = 0; k < 4; ++k) cotangents_.store(half + at + k * inner_, q[size_t(k)]);
  }

  struct Residual {
    std::array<F, 4> q;      // cotangents of momentum and divergence
    std::array<F, 3> point;  // sum over b of q_b D_c u_b
  };
  Residual residual(const Stencil7& f, const Vars& levels) const {
    std::array<std::array<F, 3>, 4> d;
    for (size_t c = 0; c < 4; ++c)
      for (size_t a = 0; a < 3; ++a) d[c][a] = k_[a] * (f.near[c][a][1] - f.near[c][a][0]);
    Residual out;
    for (size_t c = 0; c < 3; ++c) {
      F r = time_ * (F(levels[c + 3]) - F(levels[c])) + d[3][c];
      for (size_t a = 0; a < 3; ++a) {
        r = r + f.own[a] * d[c][a];
        r = r - v_[a] * (f.near[c][a][0] + f.near[c][a][1] - 2.0f * f.own[c]);
      }
      out.q[c] = seed_[0] * r;
    }
    out.q[3] = seed_[1] * (d[0][0] + d[1][1] + d[2][2]);
    for (size_t c = 0; c < 3; ++c)
      out.point[c] = out.q[0] * d[0][c] + out.q[1] * d[1][c] + out.q[2] * d[2][c];
    return out;
  }

  void step(const I& z, const I& write, const I& read) {
    const size_t rows = size_t(s_.rows);
    const Val<bool> mine = begin_ <= z && z < end_, before = begin_ < z;
    std::vector<std::array<F, 4>> prev(rows), cur(rows), next(rows), q(rows);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < 4; ++c) {
        prev[r][c] = vars_prev_[r][c];
        cur[r][c] = vars_cur_[r][c];
        next[r][c] = staged(slot_[2], int(c), own_[r]);
      }
    std::vector<Residual> all(rows);
    for (size_t r = 0; r < rows; ++r) {
      Stencil7 f;
      for (size_t c = 0; c < 4; ++c) {
        f.own[c] = cur[r][c];
        for (int side = 0; side < 2; ++side) {
          const int by = side == 0 ? -1 : 1;
          f.near[c][0][size_t(side)] = staged(slot_[1], int(c), own_[r] + by);
          const bool lane_has = side == 0 ? r > 0 : r + 1 < rows;
          f.near[c][1][size_t(side)] =
              lane_has ? cur[r + size_t(by)][c] : staged(slot_[1], int(c), own_[r] + by * width_);
        }
        f.near[c][2] = {prev[r][c], next[r][c]};
      }
      all[r] = residual(f, next_[r]);
      q[r] = all[r].q;
    }
    // Gradients of the plane below, whose cotangents are in the other half.
    if_(before, [&] { gradients(z, read, prev, cur, q); });
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < 3; ++c) {
        flux2_[r][c] = F(q1_[r][c]) * prev[r][2];
        point_[r][c] = all[r].point[c];
      }
      for (size_t k = 0; k < 4; ++k) {
        q2_[r][k] = F(q1_[r][k]);
        q1_[r][k] = q[r][k];
        vars_prev_[r][k] = cur[r][k];
        vars_cur_[r][k] = next[r][k];
      }
      put_cotangents(write, cot_[r], q[r]);
      if_(mine, [&] {
        const I plane = z * area_ + at_[r];
        for (int c = 0; c < 3; ++c) {
          const F value = time_ * q[r][size_t(c)];
          out_[2].store_at(plane + volume_ * c, value);
          out_[0].store_at(plane + volume_ * c, -value);
        }
        for (size_t k = 0; k < 4; ++k) {
          Var<f64>& sum = sums_[k / 3];
          sum = fma(cast<f64>(q[r][k]), cast<f64>(q[r][k]), Val<f64>(sum));
        }
      });
    }
    if_(in_ring_, [&] {
      Stencil7 f;
      for (size_t c = 0; c < 4; ++c) {
        f.own[c] = staged(slot_[1], int(c), ring_own_);
        for (int side = 0; side < 2; ++side) {
          const int by = side == 0 ? -1 : 1;
          f.near[c][0][size_t(side)] = staged(slot_[1], int(c), ring_own_ + by);
          f.near[c][1][size_t(side)] = staged(slot_[1], int(c), ring_own_ + by * width_);
          f.near[c][2][size_t(side)] = staged(slot_[size_t(2 * side)], int(c), ring_own_);
        }
      }
      put_cotangents(write, ring_cot_, residual(f, ring_next_).q);
    });
    load_next(z + 1);
  }

  void gradients(const I& z, const I& half, const std::vector<std::array<F, 4>>& prev,
                 const std::vector<std::array<F, 4>>& cur, const std::vector<std::array<F, 4>>& q) {
    const size_t rows = prev.size();
    for (size_t r = 0; r < rows; ++r) {
      std::array<std::array<std::array<F, 2>, 2>, 4> near;  // neighbours' cotangents: [residual][axis][side]
      std::array<std::array<F, 2>, 2> speed;                // the neighbours' u_x along x, u_y along y
      for (int side = 0; side < 2; ++side) {
        const int by = side == 0 ? -1 : 1;
        const bool lane_has = side == 0 ? r > 0 : r + 1 < rows;
        for (int k = 0; k < 4; ++k) {
          near[size_t(k)][0][size_t(side)] = cotangent(half, k, cot_[r] + by);
          near[size_t(k)][1][size_t(side)] =
              lane_has ? F(q1_[r + size_t(by)][size_t(k)]) : cotangent(half, k, cot_[r] + by * inner_width_);
        }
        speed[0][size_t(side)] = staged(slot_[0], 0, own_[r] + by);
        speed[1][size_t(side)] =
            lane_has ? prev[r + size_t(by)][1] : staged(slot_[0], 1, own_[r] + by * width_);
      }
      const I plane = (z - 1) * area_ + at_[r];
      for (size_t c = 0; c < 3; ++c) {
        const F q1 = q1_[r][c], q2 = q2_[r][c];
        F sum = point_[r][c];
        for (size_t a = 0; a < 2; ++a) {
          sum = sum + k_[a] * (near[c][a][0] * speed[a][0] - near[c][a][1] * speed[a][1]);
          sum = sum - v_[a] * (near[c][a][0] + near[c][a][1] - 2.0f * q1);
        }
        sum = sum + k_[2] * (F(flux2_[r][c]) - q[r][c] * cur[r][2]);
        sum = sum - v_[2] * (q2 + q[r][c] - 2.0f * q1);
        const F below = c == 2 ? F(q2_[r][3]) : near[3][c][0], above = c == 2 ? q[r][3] : near[3][c][1];
        sum = sum + k_[c] * (below - above);
        out_[1].store_at(plane + volume_ * int(c), sum);
      }
      const F pressure = k_[0] * (near[0][0][0] - near[0][0][1]) + k_[1] * (near[1][1][0] - near[1][1][1]) +
                         k_[2] * (F(q2_[r][2]) - q[r][2]);
      out_[3].store_at(plane, pressure);
    }
  }

  FusedShape s_;
  int width_, height_, plane_, inner_width_, inner_;
  Group<3> g_;
  std::vector<AnyGrid> in_, out_;
  std::optional<AnyGrid> partial_;
  std::array<I, 3> n_;
  I chunk_, tile_x_, tile_y_, group_, begin_, end_, area_, volume_, ring_own_, ring_cot_, ring_at_;
  Late<bool> in_ring_;
  F time_;
  std::array<F, 3> k_, v_;
  std::array<F, 2> seed_;
  AnyShared staged_, cotangents_;
  std::vector<I> own_, cot_, at_, to_, from_;
  std::vector<Late<bool>> copies_;
  std::array<I, 4> slot_;  // of planes z - 1 … z + 2
  std::vector<Vars> vars_prev_, vars_cur_, q1_, q2_, flux2_, point_, next_;
  Vars ring_next_;
  std::deque<Var<f64>> sums_;
};

}  // namespace

Kernel flow_by_hand(const FusedShape& shape) {
  KernelOptions options;
  options.group = {shape.x, shape.y, 1};
  options.min_blocks = shape.blocks;
  return kernel("pde.flow_by_hand", [&](Group<3> g, Parameters& p) { Flow(p, g, shape).trace(); }, options);
}

namespace {

/// As the tiles of the fused path: by what fills the multiprocessors. The chunks divide the planes.
FusedShape hand_shape(const Device& device, const Mesh& mesh, const LossOptions& options) {
  const int64_t nx = mesh.cells[0], ny = mesh.cells[1], nz = mesh.cells[2], count = mesh.count();
  FusedShape s{16, 8, 1, 8, 4, 1};
  if (options.tile_x > 0)
    s = {options.tile_x, options.tile_y, options.tile_rows, 8, 4, std::max(options.groups, 1)};
  else if (count >= 176 * 176 * 176 && nx % 64 == 0 && ny % 16 == 0)
    s = {64, 4, 4, 8, 4, 1};
  else if (count >= 112 * 112 * 112 && nx % 64 == 0 && ny % 8 == 0)
    s = {64, 4, 2, 8, 4, 2};
  else if (nx % 32 == 0 && ny % 4 == 0)
    s = {32, 4, 1, 8, 4, 4};
  if (nx % s.x != 0 || ny % s.tall() != 0 || nz < 4 || s.lanes() < 2 * (s.x + s.tall()))
    throw UnsupportedError(
        fmt::format("{} x {} x {} cells", nx, ny, nz), "pde flow by hand",
        fmt::format("multiples of {} and {} along x and y, lanes for the cells around a tile", s.x,
                    s.tall()));
  const int64_t tiles = nx / s.x * (ny / s.tall()),
                slots = int64_t(std::max(device.info().multiprocessors, 1)) * s.blocks;
  int64_t pieces = 1;
  while (2 * pieces * tiles <= slots && nz % (2 * pieces) == 0 && nz / (2 * pieces) >= 4) pieces *= 2;
  s.chunk = options.chunk > 0 ? options.chunk : int(nz / pieces);
  return s;
}

}  // namespace

FlowByHand bind_flow_by_hand(const Device& device, const Mesh& mesh, const Inputs& inputs,
                             const LossOptions& options) {
  const FusedShape s = hand_shape(device, mesh, options);
  const int64_t nx = mesh.cells[0], ny = mesh.cells[1], nz = mesh.cells[2];
  const auto volume = [&](const Buffer& b) { return b.reshape({b.elements() / mesh.count(), nz, ny, nx}); };
  FlowByHand f{device, flow_by_hand(s), {(nz + s.chunk - 1) / s.chunk, ny / s.tall(), nx / s.x}, {}, {}, {},
               {}};
  const std::array<Buffer, 4> in{inputs.fields.at("u")[0], inputs.fields.at("u")[1], inputs.fields.at("u")[2],
                                 inputs.fields.at("p")[1]};
  for (const Buffer& b : in) f.gradients.push_back(device.allocate(b.storage(), b.shape()));
  f.partial = device.allocate(Storage::f64, {2, f.extent.elements()});
  Arguments a;
  for (size_t k = 0; k < in.size(); ++k)
    a.set(kFields[k], volume(in[k])).set(kGradients[k], volume(f.gradients[k]));
  a.set("partial", f.partial).set("chunk", s.chunk).set("kt", 0.5 / mesh.dt);
  for (size_t axis = 0; axis < 3; ++axis) {
    const double h = mesh.spacing[axis];
    a.set(along("n", axis), mesh.cells[axis]).set(along("k", axis), 0.5 / h);
    a.set(along("v", axis), inputs.parameters.at("nu") / (h * h));
  }
  const std::array<double, 2> weights{1, kFlowDivergence};
  for (size_t k = 0; k < 2; ++k) {
    const double seed = 2 * weights[k] / double(mesh.count());
    a.set(kSeeds[k], seed);
    f.scale[k] = weights[k] / double(mesh.count()) / (seed * seed);
  }
  f.arguments = a.bind(f.kernel);
  return f;
}

double FlowByHand::loss() const {
  const std::vector<double> sums = device.download<double>(partial);
  double total = 0;
  for (size_t k = 0; k < sums.size(); ++k) total += sums[k] * scale[k / (sums.size() / 2)];
  return total;
}

}  // namespace lockstep::pde
