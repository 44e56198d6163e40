// States times powers of the step.
#include <fmt/format.h>

#include <algorithm>

#include "flow/surrogate/kernels.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/surrogate.hpp"
#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace {

constexpr int kRowLanes = 64;
constexpr int64_t kProductMembers = 8;  // from here on matmul, below a group for each number
constexpr int64_t kLiftStates = 4096;   // states between two products with the basis

/// to[m, j] = sum of from[m, k] rows[j, k]: lane l takes k = l, l + 64 … in order, then a tree over the lanes.
template <class T>
const Kernel& state_product() {
  static const Kernel kernel_ = kernel(fmt::format("flow.surrogate.product.{}", name(detail::kType<T>)),
                                       [](Group<2> g, Parameters& p) {
                                         const auto from = p.read<T, 2>("from"), rows = p.read<T, 2>("rows");
                                         const auto to = p.write<T, 2>("to");
                                         const Val<i32> j = g.id(0), m = g.id(1);
                                         Var<T> sum = T(0);
                                         for_(g.lane(), rows.size(1), kRowLanes,
                                              [&](Val<i32> k) { sum = fma(from(m, k), rows(j, k), sum); });
                                         const Val<T> all = group_sum(Val<T>(sum));
                                         if_(g.lane() == 0, [&] { to(m, j) = all; });
                                       },
                                       {{kRowLanes, 1, 1}, 0});
  return kernel_;
}

/// to[c, m, k] = from[m, c K + k], K being the last extent of `to`.
template <class T>
const Kernel& chunks_of_rows() {
  static const Kernel kernel_ = kernel(fmt::format("flow.surrogate.chunks.{}", name(detail::kType<T>)),
                                       [](At<3> at, Grid<T, 2> from, Out<T, 3> to) {
                                         to(at.z, at.y, at.x) = from(at.y, at.z * to.size(2) + at.x);
                                       });
  return kernel_;
}

const Kernel& state_product(Storage storage) {
  return storage == Storage::f64 ? state_product<f64>() : state_product<f32>();
}

}  // namespace

struct Rollout::State {
  Device device;
  Storage storage;
  int64_t members = 0, size, rank, delays, latent;
  Buffer basis, basis_columns;             // (r, D), (D, r)
  Buffer begin;                            // (members, R), the start
  Buffer states;                           // (kLiftStates or fewer, R)
  std::vector<Buffer> powers, power_rows;  // step^(2^k) and, where states are few, its transpose

  Buffer made(int64_t rows, int64_t columns) const { return device.allocate(storage, {rows, columns}); }
  const Buffer& power(size_t k) {
    while (powers.size() <= k) {
      powers.push_back(made(size, size));
      primitives::matmul(device, powers[powers.size() - 2], powers[powers.size() - 2], powers.back());
    }
    return powers[k];
  }
  /// to = from . step^(2^k), rows being states. `few`: by a group for each number of the result.
  void times_power(const Buffer& from, size_t k, const Buffer& to, bool few) {
    const Buffer by = power(k);
    if (!few) return primitives::matmul(device, from, by, to);
    while (power_rows.size() <= k) power_rows.emplace_back();
    if (!power_rows[k]) {
      power_rows[k] = made(size, size);
      primitives::transpose(device, by, power_rows[k]);
    }
    const Kernel& product = state_product(storage);
    device.launch(product, {from.shape()[0], size},
                  Arguments().set("from", from).set("rows", power_rows[k]).set("to", to));
  }
  void lift(const Buffer& from, const Buffer& out, bool few) const {
    const Buffer newest = from.window({0, size - rank}, {from.shape()[0], rank});
    if (!few) return primitives::matmul(device, newest, basis, out);
    device.launch(state_product(storage), {from.shape()[0], latent},
                  Arguments().set("from", newest).set("rows", basis_columns).set("to", out));
  }
  /// to (m, r) = rows (m, D) . basis_columns: long rows by chunks side by side, whose products are then added in order.
  void project(const Buffer& rows, const Buffer& to) const {
    if (latent <= kSumChunk) return primitives::matmul(device, rows, basis_columns, to);
    const int64_t m = rows.shape()[0], whole = latent / kSumChunk, rest = latent - whole * kSumChunk;
    const Buffer chunks = device.allocate(storage, {whole, m, kSumChunk});
    device.launch(storage == Storage::f64 ? chunks_of_rows<f64>() : chunks_of_rows<f32>(),
                  {whole, m, kSumChunk}, rows, chunks);
    ChunkedFactors last;
    if (rest > 0)
      last = {rows.window({0, latent - rest}, {m, rest}), basis_columns.rows(latent - rest, rest)};
    add_products(device, {chunks, basis_columns.rows(0, whole * kSumChunk).reshape({whole, kSumChunk, rank})},
                 last, to);
  }
  void expect(const Buffer& b, int64_t rows_multiple, const char* what) const {
    if (!b || b.storage() != storage || b.shape().rank() != 2 || b.shape()[1] != latent ||
        b.shape()[0] % rows_multiple != 0)
      throw InputError(fmt::format("{} of {} {}", what, name(b.storage()), to_string(b.shape())),
                       "flow rollout",
                       fmt::format("{} (a multiple of {}, {})", name(storage), rows_multiple, latent));
  }
  void expect_started() const {
    if (members == 0) throw InputError("a rollout without a start", "flow rollout", "start() before");
  }
};

Rollout::Rollout(const Device& device, const Surrogate& model, Storage precision)
    : Rollout(device, LearntOnDevice{model, {}, {}}, precision) {}

Rollout::Rollout(const Device& device, const LearntOnDevice& learnt, Storage precision) {
  const Surrogate& model = learnt.model;
  if (precision != Storage::f32 && precision != Storage::f64)
    throw InputError(fmt::format("precision {}", name(precision)), "flow rollout", "f32 or f64");
  if (precision == Storage::f64 && !device.info().limits.f64)
    throw UnsupportedError(fmt::format("f64 on {}", device.info().name), "flow rollout", "f32");
  state_ = std::make_shared<State>();
  State& s = *state_;
  s.device = device;
  s.storage = precision;
  s.size = model.state_size();
  s.rank = model.rank;
  s.delays = model.options.delays;
  s.latent = model.latent_size;
  if (learnt.basis) {
    s.basis_columns = converted(device, learnt.basis, precision);
    s.basis = s.made(s.rank, s.latent);
    primitives::transpose(device, s.basis_columns, s.basis);
  } else {
    s.basis = device.upload(model.basis.to(precision));
    s.basis_columns = s.made(s.latent, s.rank);
    primitives::transpose(device, s.basis, s.basis_columns);
  }
  s.powers.push_back(device.upload(model.step.to(precision)));
}

void Rollout::start(const Buffer& latents) {
  State& s = *state_;
  s.expect(latents, s.delays, "a start");
  if (latents.shape()[0] == 0) throw InputError("a start of no frames", "flow rollout", "one member or more");
  s.members = latents.shape()[0] / s.delays;
  s.begin = s.made(s.members, s.size);
  s.project(latents, s.begin.reshape({s.members * s.delays, s.rank}));
}

void Rollout::run(const Buffer& out, RolloutMode mode) {
  State& s = *state_;
  s.expect_started();
  s.expect(out, s.members, "a rollout");
  const int64_t total = out.shape()[0];
  if (total == 0) return;
  const int64_t block = std::min(total, std::max<int64_t>(kLiftStates / s.members, 1) * s.members);
  if (!s.states || s.states.shape()[0] < block) s.states = s.made(block, s.size);
  Buffer from = s.begin;
  const Buffer carried = s.made(s.members, s.size);
  for (int64_t first = 0; first < total; first += block) {
    const int64_t count = std::min(block, total - first), m = s.members;
    s.times_power(from, 0, s.states.rows(0, m), m < kProductMembers);
    for (int64_t done = m; done < count;) {
      int64_t now = m;
      size_t k = 0;
      if (mode == RolloutMode::doubling)
        while (2 * now <= done) now *= 2, ++k;
      const int64_t rows = std::min(now, count - done);
      s.times_power(s.states.rows(done - now, rows), k, s.states.rows(done, rows), now < kProductMembers);
      done += rows;
    }
    s.lift(s.states.rows(0, count), out.rows(first, count), false);
    if (first + count < total) s.device.copy(s.states.rows(count - m, m), carried);
    from = carried;
  }
}

void Rollout::jump(int64_t steps, const Buffer& out) {
  State& s = *state_;
  s.expect_started();
  s.expect(out, s.members, "a jump");
  if (steps < 0) throw InputError(fmt::format("{} steps", steps), "flow rollout", "0 or more");
  if (out.shape()[0] != s.members)
    throw InputError(fmt::format("{} frames", out.shape()[0]), "flow rollout", fmt::format("{}", s.members));
  Buffer from = s.begin, to = s.made(s.members, s.size), other = s.made(s.members, s.size);
  for (size_t k = 0; (steps >> k) > 0; ++k) {
    if (((steps >> k) & 1) == 0) continue;
    s.times_power(from, k, to, s.members < kProductMembers);
    from = to;
    std::swap(to, other);
  }
  s.lift(from, out, s.members < kProductMembers);
}

const Device& Rollout::device() const { return state_->device; }

int64_t Rollout::bytes() const {
  const State& s = *state_;
  int64_t sum = 0;
  for (const Buffer* b : {&s.basis, &s.basis_columns, &s.begin, &s.states}) sum += *b ? b->bytes() : 0;
  for (const auto* all : {&s.powers, &s.power_rows})
    for (const Buffer& b : *all) sum += b ? b.bytes() : 0;
  return sum;
}

std::vector<Kernel> surrogate_kernels(Storage storage) {
  if (storage == Storage::f64) return {state_product<f64>(), chunks_of_rows<f64>()};
  return {state_product<f32>(), chunks_of_rows<f32>()};
}

}  // namespace lockstep::flow
