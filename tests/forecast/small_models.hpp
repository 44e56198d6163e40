// Small models for tests of trainers.
#pragma once

#include <cmath>
#include <vector>

#include "lockstep/kernel.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::forecast {

/// loss = 1/2 sum of curvature_i (x_i - target_i)^2, as tensors of given sizes. Batches do not matter.
class QuadraticBowl : public nn::TrainableModel {
 public:
  QuadraticBowl(const Device& device, Storage storage, std::vector<int64_t> sizes, double least = 0.02)
      : device_(device) {
    int64_t n = 0;
    for (const int64_t size : sizes) {
      tensors_.push_back({"tensor" + std::to_string(tensors_.size()), {size}, n, size});
      n += size;
    }
    parameters_ = device.allocate(storage, {n});
    gradient_ = device.allocate(storage, {n});
    shifted_ = device.allocate(storage, {n});
    std::vector<double> curvature, target, start;
    for (int64_t i = 0; i < n; ++i) {
      curvature.push_back(least * std::pow(1 / least, double((i * 7) % 3) / 2));  // three modes
      target.push_back(std::sin(double(i)));
      start.push_back(2 + std::cos(3.0 * double(i)));
    }
    curvature_ = upload(curvature);
    target_ = upload(target);
    set(start);
  }
  const Device& device() const override { return device_; }
  std::span<const nn::ParameterTensor> tensors() const override { return tensors_; }
  Buffer parameters() const override { return parameters_; }
  Buffer gradient() const override { return gradient_; }
  void launch_loss(const nn::Batch&, const Buffer& loss) override {
    primitives::copy(device_, parameters_, shifted_);
    primitives::axpy(device_, -1, target_, shifted_);
    primitives::multiply(device_, curvature_, shifted_, gradient_);
    primitives::dot(device_, shifted_, gradient_, loss);
    primitives::scale(device_, 0.5, loss);
  }
  void launch_gradient(const nn::Batch& batch, const Buffer& loss, uint64_t) override {
    launch_loss(batch, loss);
  }

  std::vector<double> get() const { return read(parameters_); }
  void set(const std::vector<double>& x) { write(x, parameters_); }
  std::vector<double> read(const Buffer& b) const {
    if (b.storage() == Storage::f64) return device_.download<double>(b);
    const std::vector<float> x = device_.download<float>(b);
    return {x.begin(), x.end()};
  }
  void write(const std::vector<double>& x, const Buffer& b) const {
    if (b.storage() == Storage::f64) {
      device_.write(b, x.data(), b.bytes());
    } else {
      const std::vector<float> narrow(x.begin(), x.end());
      device_.write(b, narrow.data(), b.bytes());
    }
  }

 private:
  Buffer upload(const std::vector<double>& x) const {
    const Buffer b = device_.allocate(parameters_.storage(), {int64_t(x.size())});
    write(x, b);
    return b;
  }

  Device device_;
  std::vector<nn::ParameterTensor> tensors_;
  Buffer parameters_, gradient_, shifted_, curvature_, target_;
};

}  // namespace lockstep::forecast
