#include "solve/linear/krylov/conjugate_gradients.hpp"

#include <fmt/format.h>

#include "primitives/sums/chunked_sum.hpp"

namespace lockstep::solve {

namespace {

using primitives::strided_sum;

enum Scalar { kRz, kThreshold, kAlpha, kBeta, kScalars };
enum Flag { kDone, kCount, kFailed, kFlags };
enum Control { kStart, kStepLength, kDirection };

template <class T>
std::string named(const char* what) {
  return fmt::format("solve.cg.{}.{}", what, name(lockstep::detail::kType<T>));
}

/// One group sums what the groups before left and decides how it continues.
template <class T>
const Kernel& control_kernel(int which) {
  const KernelOptions& one = primitives::kSumGroup;
  static const Kernel start = kernel(
      named<T>("start"),
      [](Group<1> g, Grid<T, 1> rz, Grid<T, 1> rr, Grid<T, 1> parameters, Out<T, 1> scalars,
         Out<i32, 1> flags) {
        const Val<T> new_rz = strided_sum<T>(g, rz), new_rr = strided_sum<T>(g, rr);
        if_(g.lane() == 0, [&] {
          scalars[int(kRz)] = new_rz;
          scalars[int(kThreshold)] = parameters[1] * new_rr;
          scalars[int(kAlpha)] = T(0);
          scalars[int(kBeta)] = T(0);
          const Val<bool> finite = isfinite(new_rz) && isfinite(new_rr);
          flags[int(kDone)] = select(finite && new_rr > T(0), Val<i32>(0), Val<i32>(1));
          flags[int(kCount)] = Val<i32>(0);
          flags[int(kFailed)] = select(finite, Val<i32>(0), Val<i32>(1));
        });
      },
      one);
  static const Kernel step_length = kernel(
      named<T>("step_length"),
      [](Group<1> g, Grid<T, 1> pq, InOut<T, 1> scalars, InOut<i32, 1> flags) {
        const Val<T> sum = strided_sum<T>(g, pq);
        if_(g.lane() == 0, [&] {
          const Val<bool> open = flags[int(kDone)] == 0, good = sum > T(0) && isfinite(sum);
          const Val<T> rz = scalars[int(kRz)];
          scalars[int(kAlpha)] = select(open && good, rz / select(good, sum, Val<T>(T(1))), Val<T>(T(0)));
          // A later direction without curvature ends the solution where it is, a point of descent (Steihaug).
          if_(open && !good, [&] {
            flags[int(kDone)] = Val<i32>(1);
            flags[int(kFailed)] = select(isfinite(sum) && flags[int(kCount)] > 0, Val<i32>(0), Val<i32>(1));
          });
        });
      },
      one);
  static const Kernel direction = kernel(
      named<T>("direction"),
      [](Group<1> g, Grid<T, 1> rz, Grid<T, 1> rr, Grid<T, 1> parameters, InOut<T, 1> scalars,
         InOut<i32, 1> flags) {
        const Val<T> new_rz = strided_sum<T>(g, rz), new_rr = strided_sum<T>(g, rr);
        if_(g.lane() == 0, [&] {
          const Val<bool> open = flags[int(kDone)] == 0, finite = isfinite(new_rz) && isfinite(new_rr);
          const Val<i32> count = flags[int(kCount)] + select(open, Val<i32>(1), Val<i32>(0));
          const Val<bool> done = !open || !finite || new_rr <= Val<T>(scalars[int(kThreshold)]) ||
                                 cast<T>(count) >= parameters[2];
          const Val<T> old_rz = scalars[int(kRz)];
          scalars[int(kBeta)] = select(done, Val<T>(T(0)), new_rz / select(done, Val<T>(T(1)), old_rz));
          scalars[int(kRz)] = new_rz;
          flags[int(kCount)] = count;
          flags[int(kDone)] = select(done, Val<i32>(1), Val<i32>(0));
          if_(open && !finite, [&] { flags[int(kFailed)] = Val<i32>(1); });
        });
      },
      one);
  return which == kStart ? start : which == kStepLength ? step_length : direction;
}

/// Products p q summed by chunks.
template <class T>
const Kernel& dot_kernel() {
  static const Kernel k = kernel(
      named<T>("dot"),
      [](Group<1> g, Grid<T, 1> p, Grid<T, 1> q, Out<T, 1> sums) {
        const Val<T> total = primitives::chunk_sum<T>(
            g, p.size(0), [&](const Val<T>& sum, const Val<i32>& at) { return fma(p[at], q[at], sum); });
        if_(g.lane() == 0, [&] { sums[g.id()] = total; });
      },
      primitives::kSumGroup);
  return k;
}

template <class T>
const Kernel& turn_kernel() {
  static const Kernel k =
      kernel(named<T>("turn"), [](At<1> at, Grid<T, 1> scalars, Grid<T, 1> z, InOut<T, 1> p) {
        p[at] = fma(scalars[int(kBeta)], Val<T>(p[at]), z[at]);
      });
  return k;
}

template <class T>
const Kernel& damp_kernel() {
  static const Kernel k =
      kernel(fmt::format("solve.damp.{}", name(lockstep::detail::kType<T>)),
             [](At<1> at, Grid<T, 1> parameters, Grid<T, 1> diagonal, Grid<T, 1> p, InOut<T, 1> q) {
               const Val<T> d = min(max(diagonal[at], parameters[3]), parameters[4]);
               q[at] = fma(parameters[0] * d, p[at], Val<T>(q[at]));
             });
  return k;
}

}  // namespace

ConjugateGradients::ConjugateGradients(const Device& device, Storage real, int64_t size,
                                       std::vector<BlockPart> parts, Product product, bool by_host)
    : device_(device),
      real_(real),
      size_(size),
      parts_(std::move(parts)),
      product_(std::move(product)),
      by_host_(by_host) {
  int64_t groups = 0;
  for (const BlockPart& part : parts_) {
    first_group_.push_back(groups);
    groups += part.groups();
  }
  parameters_ = device.allocate(real, {5});
  scalars_ = device.allocate(real, {int(kScalars)});
  flags_ = device.allocate<i32>({int(kFlags)});
  for (Buffer* b : {&r_, &x_, &z_, &p_, &q_}) *b = device.allocate(real, {size});
  device.clear(z_);  // what no part covers stays 0
  pq_ = device.allocate(real, {primitives::sum_chunks(size)});
  rz_ = device.allocate(real, {groups});
  rr_ = device.allocate(real, {groups});
}

void ConjugateGradients::set_parameters(double lambda, double forcing, int max_iterations,
                                        const DampingRange& damping) {
  const DampingRange range = real_ == Storage::f64 ? damping : damping.narrow();
  const double numbers[] = {lambda, forcing * forcing, double(max_iterations), range.low, range.high};
  if (real_ == Storage::f64) {
    device_.write(parameters_, numbers, sizeof numbers);
  } else {
    const float narrow[] = {float(numbers[0]), float(numbers[1]), float(numbers[2]), float(numbers[3]),
                            float(numbers[4])};
    device_.write(parameters_, narrow, sizeof narrow);
  }
}

std::vector<std::function<Kernel()>> ConjugateGradients::kernels(Storage real) {
  const bool wide = real == Storage::f64;
  std::vector<std::function<Kernel()>> kernels;
  for (const int which : {kStart, kStepLength, kDirection})
    kernels.push_back([=] { return wide ? control_kernel<f64>(which) : control_kernel<f32>(which); });
  kernels.push_back([=] { return wide ? dot_kernel<f64>() : dot_kernel<f32>(); });
  kernels.push_back([=] { return wide ? turn_kernel<f64>() : turn_kernel<f32>(); });
  kernels.push_back([=] { return wide ? damp_kernel<f64>() : damp_kernel<f32>(); });
  return kernels;
}

void ConjugateGradients::add_damping(const Buffer& diagonal, const Buffer& p, const Buffer& q) const {
  device_.launch(real_ == Storage::f64 ? damp_kernel<f64>() : damp_kernel<f32>(), {size_}, parameters_,
                 diagonal, p, q);
}

void ConjugateGradients::control(int which) {
  const Kernel& k = real_ == Storage::f64 ? control_kernel<f64>(which) : control_kernel<f32>(which);
  if (which == kStepLength)
    device_.launch(k, {1}, pq_, scalars_, flags_);
  else
    device_.launch(k, {1}, rz_, rr_, parameters_, scalars_, flags_);
}

void ConjugateGradients::iterate() {
  product_(p_, q_);
  device_.launch(real_ == Storage::f64 ? dot_kernel<f64>() : dot_kernel<f32>(),
                 {primitives::sum_chunks(size_)}, p_, q_, pq_);
  control(kStepLength);
  for (size_t k = 0; k < parts_.size(); ++k)
    precondition(device_, parts_[k], true, scalars_, p_, q_, x_, r_, z_,
                 rz_.rows(first_group_[k], parts_[k].groups()),
                 rr_.rows(first_group_[k], parts_[k].groups()));
  control(kDirection);
  device_.launch(real_ == Storage::f64 ? turn_kernel<f64>() : turn_kernel<f32>(), {size_}, scalars_, z_, p_);
}

LinearResult ConjugateGradients::solve(const Buffer& b, const Buffer& x) {
  device_.copy(b, r_);
  device_.clear(x_);
  for (size_t k = 0; k < parts_.size(); ++k)
    precondition(device_, parts_[k], false, scalars_, p_, q_, x_, r_, z_,
                 rz_.rows(first_group_[k], parts_[k].groups()),
                 rr_.rows(first_group_[k], parts_[k].groups()));
  control(kStart);
  device_.copy(z_, p_);
  for (;;) {
    if (by_host_) {
      iterate();
    } else if (!recorded_) {
      iterate();  // compiles every kernel and fills every scratch buffer before the recording
      graph_ = device_.record([&] {
        for (int k = 0; k < kIterations; ++k) iterate();
      });
      recorded_ = true;
    } else {
      device_.replay(graph_);
    }
    const std::vector<int32_t> flags = device_.download<int32_t>(flags_);
    if (!flags[kDone]) continue;
    device_.copy(x_, x);
    LinearResult result;
    result.iterations = flags[kCount];
    result.ok = !flags[kFailed];
    if (!result.ok) result.message = "conjugate gradients met a direction without curvature";
    return result;
  }
}

}  // namespace lockstep::solve
