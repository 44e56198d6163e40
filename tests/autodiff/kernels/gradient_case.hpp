// A kernel with arguments whose gradients tests compute on several devices.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "lockstep/differentiate.hpp"

namespace lockstep::testing {

inline std::vector<Device> gradient_devices() {
  std::vector<Device> devices{Device::open("interp")};
  for (int threads : {1, 2, 4}) devices.push_back(Device::open("cpu", {.threads = threads}));
  return devices;
}

inline std::vector<double> wave(int64_t n, double step = 0.7) {
  std::vector<double> v;
  for (int64_t k = 0; k < n; ++k) v.push_back(std::sin(step * double(k) + 0.3));
  return v;
}

struct GradientCase {
  using Doubles = std::vector<double>;
  Kernel kernel;
  Shape extent;
  std::map<std::string, Array> buffers;  // of the kernel, by name
  std::map<std::string, double> numbers;
  Differentiation which;

  GradientCase& f64s(const std::string& name, const Doubles& values, Shape shape = {}) {
    return put(name, values, shape);
  }
  template <class T>
  GradientCase& put(const std::string& name, const std::vector<T>& values, Shape shape = {}) {
    if (shape.rank() == 0) shape = {int64_t(values.size())};
    Sizes sizes;
    for (int a = 0; a < shape.rank(); ++a) sizes.push_back(shape[a]);
    buffers.insert_or_assign(name, Array::of(values, sizes));
    return *this;
  }

  Arguments arguments(const Device& device) const {
    Arguments list;
    for (const auto& [name, array] : buffers) list.set(name, device.upload(array));
    for (const auto& [name, number] : numbers) list.set(name, number);
    return list;
  }

  /// Gradients by name, for cotangents by name.
  std::map<std::string, Doubles> gradients(const Device& device,
                                           const std::map<std::string, Doubles>& cotangents,
                                           const Gradient::Options& options = {}) const {
    const Gradient gradient = differentiate(kernel, which);
    Arguments list;
    std::map<std::string, Buffer> results;
    for (const KernelParameter& p : gradient.parameters()) {
      const auto number = numbers.find(p.name);
      if (number != numbers.end()) list.set(p.name, number->second);
      if (const auto own = buffers.find(p.name); own != buffers.end())
        list.set(p.name, device.upload(own->second));
      const size_t ending = p.name.find("_cotangent"), result = p.name.find("_gradient");
      if (ending != p.name.npos) {
        const Array& like = buffers.at(p.name.substr(0, ending));
        list.set(p.name,
                 upload(device, p.storage, cotangents.at(p.name.substr(0, ending)), like.device_shape()));
      } else if (result != p.name.npos) {
        const std::string name = p.name.substr(0, result);
        const auto own = buffers.find(name);
        results[name] =
            device.allocate(p.storage, own == buffers.end() ? Shape{1} : own->second.device_shape());
        list.set(p.name, results[name]);
      }
    }
    gradient.launch(device, extent, list, options);
    std::map<std::string, Doubles> values;
    for (const auto& [name, buffer] : results) values[name] = download(device, buffer);
    return values;
  }

  /// Reverse against forward mode, forward against differences, and the same bits on all devices.
  void expect_consistent(double difference_bound = 1e-7, double step = 1e-6) const {
    const Device cpu = Device::open("cpu");
    const KernelGradientCheck check = check_gradient(cpu, kernel, extent, arguments(cpu), which, 1, step);
    ASSERT_TRUE(std::isfinite(check.forward));
    ASSERT_GT(check.scale, 0);
    EXPECT_NEAR(check.reverse, check.forward, 1e-12 * check.scale) << kernel.name();
    EXPECT_NEAR(check.difference, check.forward, difference_bound * check.scale) << kernel.name();
    expect_same_bits();
  }
  void expect_same_bits() const {
    std::map<std::string, Doubles> cotangents;
    for (const auto& [name, array] : buffers) {
      Doubles& values = cotangents[name];
      for (int64_t k = 0; k < array.elements(); ++k) values.push_back(std::sin(double(3 * k + 1)));
    }
    std::map<std::string, Doubles> first;
    for (const Device& device : gradient_devices())
      for (const bool lane_records : {true, false}) {
        Gradient::Options options;
        options.lane_records = lane_records;
        const auto found = gradients(device, cotangents, options);
        if (first.empty()) first = found;
        for (const auto& [name, values] : found)
          for (size_t k = 0; k < values.size(); ++k)
            ASSERT_EQ(std::bit_cast<uint64_t>(values[k]), std::bit_cast<uint64_t>(first.at(name)[k]))
                << kernel.name() << " " << name << "[" << k << "] on " << device.info().name
                << ", records in " << (lane_records ? "lanes" : "memory");
      }
  }

  static Buffer upload(const Device& device, Storage storage, const Doubles& v, const Shape& shape) {
    if (storage == Storage::f64) return device.upload<double>(v, shape);
    return device.upload<float>(std::vector<float>(v.begin(), v.end()), shape);
  }
  static Doubles download(const Device& device, const Buffer& b) {
    if (b.storage() == Storage::f64) return device.download<double>(b);
    const std::vector<float> narrow = device.download<float>(b);
    return Doubles(narrow.begin(), narrow.end());
  }
};

}  // namespace lockstep::testing
