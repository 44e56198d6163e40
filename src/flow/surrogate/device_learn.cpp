// Learning where the latents are. Frames are columns of tall f64 matrices on the device; the host sees matrices of
// frames by frames alone.
#include <fmt/format.h>

#include <vector>

#include "flow/surrogate/kernels.hpp"
#include "flow/surrogate/regression.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace {

constexpr double kDepth = 1e-10;  // squares of singular values that one Gram matrix resolves
constexpr int kMostPasses = 8;

const Kernel& widened() {
  static const Kernel made =
      kernel("flow.surrogate.widened",
             [](At<1> at, Grid<f32, 1> from, Out<f64, 1> to) { to[at.x] = cast<f64>(from[at.x]); });
  return made;
}
const Kernel& narrowed() {
  static const Kernel made =
      kernel("flow.surrogate.narrowed",
             [](At<1> at, Grid<f64, 1> from, Out<f32, 1> to) { to[at.x] = cast<f32>(from[at.x]); });
  return made;
}
/// to[c, i, k] = from[c, k, i].
const Kernel& turned() {
  static const Kernel made = kernel("flow.surrogate.turned", [](At<3> at, Grid<f64, 3> from, Out<f64, 3> to) {
    to(at.z, at.y, at.x) = from(at.z, at.x, at.y);
  });
  return made;
}

/// Tall matrices (rows, n) on a device, in products whose small factor or result is on the host.
class Tall {
 public:
  Tall(const Device& device, int64_t latent)
      : device_(device),
        latent_(latent),
        chunk_(std::min(latent, kSumChunk)),
        count_((latent + chunk_ - 1) / chunk_) {}

  /// Latents (n, D) as columns; rows beyond D are 0.
  Buffer columns_of(const Buffer& latents) const {
    const int64_t n = latents.shape()[0];
    const Buffer columns = device_.allocate(Storage::f64, {count_ * chunk_, n});
    if (count_ * chunk_ > latent_) device_.clear(columns.rows(latent_, count_ * chunk_ - latent_));
    const Buffer to = columns.rows(0, latent_);
    if (latents.storage() == Storage::f64) {
      primitives::transpose(device_, latents, to);
    } else {
      const Buffer narrow = device_.allocate(Storage::f32, {latent_, n});
      primitives::transpose(device_, latents, narrow);
      device_.launch(widened(), {latent_ * n}, narrow.reshape({latent_ * n}), to.reshape({latent_ * n}));
    }
    return columns;
  }
  /// a' b: sums over chunks of rows, and these in order.
  Matrix cross(const Buffer& a, const Buffer& b) const {
    const int64_t m = a.shape()[1], n = b.shape()[1];
    const Buffer left = device_.allocate(Storage::f64, {count_, m, chunk_}),
                 sum = device_.allocate(Storage::f64, {m, n});
    device_.launch(turned(), {count_, m, chunk_}, a.reshape({count_, chunk_, m}), left);
    add_products(device_, {left, b.reshape({count_, chunk_, n})}, {}, sum);
    const Matrix result = matrix_of(device_.download(sum));
    if (!result.allFinite())
      throw InputError("a latent is not finite", "flow surrogate", "finite numbers below 1e150");
    return result;
  }
  Buffer times(const Buffer& a, const Matrix& m) const {
    const Buffer product = device_.allocate(Storage::f64, {a.shape()[0], int64_t(m.cols())});
    primitives::matmul(device_, a, device_.upload(array_of(m)), product);
    return product;
  }
  /// a -= b m.
  void subtract(const Buffer& a, const Buffer& b, const Matrix& m) const {
    primitives::axpy(device_, -1, times(b, m), a);
  }
  Buffer beside(const Buffer& a, const Buffer& b) const {
    const int64_t rows = a.shape()[0], m = a.shape()[1], n = b.shape()[1];
    const Buffer both = device_.allocate(Storage::f64, {rows, m + n});
    primitives::copy(device_, a, both.window({0, 0}, {rows, m}));
    primitives::copy(device_, b, both.window({0, m}, {rows, n}));
    return both;
  }
  /// Orthonormal columns of the span of columns that are nearly so: by Cholesky factors of their Gram matrix.
  Buffer orthonormal(const Buffer& a) const {
    Buffer q = a;
    for (int pass = 0; pass < 2; ++pass) q = times(q, cholesky_inverse(cross(q, q)));
    return q;
  }
  /// Orthonormal columns that span the frames'. A Gram matrix resolves five digits of singular values. The next pass
  /// processes the remainder of the frames, until only rounding is left.
  Buffer span(const Buffer& frames) const {
    Buffer rest = device_.allocate(Storage::f64, frames.shape()), all;
    device_.copy(frames, rest);
    const double rounding = rounding_of(frames.shape()[1], latent_);
    double least = 0;  // of squares
    for (int pass = 0; pass < kMostPasses; ++pass) {
      const GramVectors g = gram_vectors(cross(rest, rest), kDepth, least);
      if (pass == 0) least = rounding * rounding * g.largest;
      const int64_t have = all ? all.shape()[1] : 0,
                    kept = std::min<int64_t>(g.scaled.cols(), std::min(frames.shape()[1], latent_) - have);
      if (kept == 0) break;
      Buffer next = times(rest, g.scaled.rightCols(kept));
      if (all) subtract(next, all, cross(all, next));
      next = orthonormal(next);
      subtract(rest, next, cross(next, rest));
      all = all ? beside(all, next) : next;
    }
    return all;
  }

 private:
  const Device& device_;
  int64_t latent_, chunk_, count_;
};

LearntOnDevice uploaded(const Device& device, Surrogate model, Storage storage) {
  LearntOnDevice learnt;
  learnt.basis = device.upload(model.basis.transposed().packed().to(storage));
  learnt.climatology = device.upload(model.climatology.reshape({1, model.latent_size}).to(storage));
  model.basis = model.climatology = model.last = {};
  learnt.model = std::move(model);
  return learnt;
}

}  // namespace

LearntOnDevice learn(const Device& device, const Buffer& latents, const SurrogateOptions& options) {
  if (!latents || latents.shape().rank() != 2 || latents.shape()[1] < 1 || latents.shape()[1] > kMaxLatent ||
      (latents.storage() != Storage::f32 && latents.storage() != Storage::f64))
    throw InputError("latents of another form", "flow surrogate",
                     fmt::format("f32 or f64 (frames, 1 to {} numbers)", kMaxLatent));
  const int64_t size = latents.shape()[1];
  LearntOnDevice learnt;
  Surrogate& model = learnt.model = begun(latents.shape()[0], size, options);
  const int64_t train = model.train_frames;
  if (!device.info().limits.f64)
    return uploaded(device, learn(device.download(latents), options), Storage::f32);
  if (train > kMaxState) return uploaded(device, learn(device.download(latents), options), Storage::f64);
  const Tall tall(device, size);
  const Buffer frames = tall.columns_of(latents.rows(0, train));
  const bool dmd = options.method == SurrogateMethod::dmd;
  const Buffer span = tall.span(dmd ? tall.columns_of(latents.rows(0, train - 1)) : frames);
  Matrix basis = Matrix::Identity(1, 1), coordinates = Matrix::Zero(train, 1);
  Buffer vectors;
  if (span) {
    const Matrix inside = tall.cross(frames, span);  // (frames, columns of the span)
    const int64_t of = train - int64_t(dmd);
    basis = singular_basis(inside.topRows(of), rounding_of(of, size), options).transpose();
    coordinates = product(inside, basis);
    vectors = tall.times(span, basis);
  } else {  // all frames are 0: any direction
    vectors = device.allocate(Storage::f64, {frames.shape()[0], 1});
    device.clear(vectors);
    primitives::fill(device, vectors.rows(0, 1), 1);
  }
  fit(model, coordinates);
  learnt.basis = vectors.rows(0, size);
  learnt.climatology =
      tall.times(frames, Matrix::Constant(train, 1, 1 / double(train))).rows(0, size).reshape({1, size});
  return learnt;
}

Surrogate to_host(const Device& device, const LearntOnDevice& learnt, const Buffer& latents) {
  Surrogate model = learnt.model;
  const auto host = [&](const Buffer& b) { return device.download(b).to(Storage::f64); };
  model.basis = host(learnt.basis).transposed().packed();
  model.climatology = host(learnt.climatology).reshape({model.latent_size});
  model.last = host(latents.rows(model.train_frames - model.options.delays, model.options.delays));
  return model;
}

std::vector<Kernel> learning_kernels() { return {widened(), narrowed(), turned()}; }

Buffer converted(const Device& device, const Buffer& from, Storage storage) {
  if (from.storage() == storage) return from;
  const Buffer to = device.allocate(storage, from.shape());
  const int64_t all = from.elements();
  device.launch(storage == Storage::f32 ? narrowed() : widened(), {all}, from.reshape({all}),
                to.reshape({all}));
  return to;
}

}  // namespace lockstep::flow
