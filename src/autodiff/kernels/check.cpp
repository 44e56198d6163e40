// Forward mode, reverse mode and differences against each other, in one random direction.
#include "autodiff/kernels/check.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "autodiff/kernels/roles.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

using namespace ir;

namespace {

using Numbers = std::vector<double>;

/// Numbers in [-1, 1), by splitmix64.
Numbers random_numbers(uint64_t& state, int64_t n) {
  Numbers list;
  for (int64_t k = 0; k < n; ++k) {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    list.push_back(double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1);
  }
  return list;
}

class Check {
 public:
  Check(const gradients::Comparison::Parts& parts, const Device& device, const Shape& extent,
        const Arguments& arguments, uint64_t seed)
      : parts_(parts), f_(parts.f), roles_(parts.roles), device_(device), extent_(extent) {
    bind(arguments);
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      if (!roles_.input_buffers[k] && !roles_.output_buffers[k]) continue;
      const Buffer& b = buffer(k);
      plain_ &= b.storage() == Storage::f32 || b.storage() == Storage::f64;
      if (roles_.input_buffers[k]) directions_[k] = random_numbers(seed, b.elements());
      if (roles_.output_buffers[k]) cotangents_[k] = random_numbers(seed, b.elements());
    }
    for (size_t k = 0; k < f_.scalars.size(); ++k)
      if (roles_.input_scalars[k]) scalars_[k] = {number(k), random_numbers(seed, 1)[0]};
  }

  KernelGradientCheck modes(double step) const {
    KernelGradientCheck result;
    result.norms = norm(cotangents_) * norm(directions_);
    forward(result);
    result.reverse = reverse(result.gradients);
    result.difference =
        plain_ ? (shifted(step) - shifted(-step)) / (2 * step) : std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  double reverse(std::vector<Array>& results) const {
    std::map<std::string, Argument> list = at(0);
    std::map<std::string, Buffer> gradients;
    for (const auto& [k, cotangent] : cotangents_)
      if (f_.buffers[k].access == Access::write) list.erase(f_.buffers[k].name);
    for (const auto& [k, along] : directions_)
      gradients[f_.buffers[k].name + "_gradient"] =
          device_.allocate(gradients::wide_enough(buffer(k).storage()), buffer(k).shape());
    for (const auto& [k, s] : scalars_)
      gradients[f_.scalars[k].name + "_gradient"] =
          device_.allocate(gradients::wide_enough(f_.scalars[k].type), {1});
    for (const auto& [name, b] : gradients) list[name] = b;
    for (const auto& [k, cotangent] : cotangents_)
      list[f_.buffers[k].name + "_cotangent"] = upload(cotangent, buffer(k));
    parts_.gradient.launch(device_, extent_, named(list));
    double sum = 0;
    const auto add = [&](const std::string& name, const Numbers& direction) {
      const Buffer& gradient = gradients.at(name + "_gradient");
      sum += dot(direction, values(gradient));
      results.push_back(device_.download(gradient));
    };
    for (const auto& [k, along] : directions_) add(f_.buffers[k].name, along);
    for (const auto& [k, s] : scalars_) add(f_.scalars[k].name, {s.second});
    return sum;
  }

 private:
  void bind(const Arguments& arguments) {
    const Kernel order =
        Kernel::trace(parts_.kernel.name(), f_.domain, f_.rank, KernelOptions{f_.group}, [&](Builder& b) {
          gradients::copy_frame(f_, b.function());
          b.function().buffers = f_.buffers;
          for (BufferParam& p : b.function().buffers) p.position = -1;
        });
    const std::vector<Argument> list = arguments.bind(order);
    const std::vector<KernelParameter> parameters = order.parameters();
    for (size_t k = 0; k < list.size(); ++k) given_.emplace(parameters[k].name, list[k]);
  }
  const Buffer& buffer(size_t k) const { return std::get<Buffer>(given_.at(f_.buffers[k].name)); }
  double number(size_t k) const {
    const Argument& a = given_.at(f_.scalars[k].name);
    if (const double* v = std::get_if<double>(&a)) return *v;
    if (const int64_t* v = std::get_if<int64_t>(&a)) return double(*v);
    if (const uint64_t* v = std::get_if<uint64_t>(&a)) return double(*v);
    throw InputError("a number of another kind", "check_gradient, argument " + f_.scalars[k].name,
                     "a plain number");
  }

  Numbers values(const Buffer& b) const {
    if (b.storage() == Storage::f64) return device_.download<double>(b);
    const std::vector<float> narrow = device_.download<float>(b);
    return Numbers(narrow.begin(), narrow.end());
  }
  Buffer upload(const Numbers& v, const Buffer& like) const {
    if (like.storage() == Storage::f64) return device_.upload<double>(v, like.shape());
    return device_.upload<float>(std::vector<float>(v.begin(), v.end()), like.shape());
  }
  Buffer copy(const Buffer& b) const {
    const Buffer to = device_.allocate(b.storage(), b.shape());
    std::vector<uint8_t> bytes(size_t(b.bytes()));
    device_.read(b, bytes.data(), b.bytes());
    device_.write(to, bytes.data(), b.bytes());
    return to;
  }
  static double dot(const Numbers& a, const Numbers& b, double* magnitude = nullptr) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      sum += a[k] * b[k];
      if (magnitude) *magnitude += std::fabs(a[k] * b[k]);
    }
    return sum;
  }

  static double norm(const std::map<size_t, Numbers>& lists) {
    double sum = 0;
    for (const auto& [k, numbers] : lists) sum += dot(numbers, numbers);
    return std::sqrt(sum);
  }

  /// The kernel's own arguments with the inputs `shift` along their direction; what it writes is a copy.
  std::map<std::string, Argument> at(double shift) const {
    std::map<std::string, Argument> list = given_;
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      const std::string& name = f_.buffers[k].name;
      if (const auto along = directions_.find(k); along != directions_.end() && shift != 0) {
        Numbers moved = values(buffer(k));
        for (size_t n = 0; n < moved.size(); ++n) moved[n] += shift * along->second[n];
        list[name] = upload(moved, buffer(k));
      } else if (f_.buffers[k].access != Access::read) {
        const Buffer own = copy(buffer(k));
        // Elements that the kernel leaves alone would only add their rounding to differences.
        if (f_.buffers[k].access == Access::write) device_.clear(own);
        list[name] = own;
      }
    }
    for (const auto& [k, s] : scalars_) list[f_.scalars[k].name] = s.first + shift * s.second;
    return list;
  }
  static Arguments named(const std::map<std::string, Argument>& list) {
    Arguments arguments;
    for (const auto& [name, value] : list) arguments.set(name, value);
    return arguments;
  }

  void forward(KernelGradientCheck& result) const {
    std::map<std::string, Argument> list = at(0);
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      if (!roles_.input_buffers[k] && !roles_.output_buffers[k]) continue;
      const auto along = directions_.find(k);
      const Numbers zeros(size_t(buffer(k).elements()), 0);
      list[f_.buffers[k].name + parts_.ending] =
          upload(along == directions_.end() ? zeros : along->second, buffer(k));
    }
    for (const auto& [k, s] : scalars_) list[f_.scalars[k].name + parts_.ending] = s.second;
    device_.launch(parts_.tangent, extent_, named(list));
    for (const auto& [k, cotangent] : cotangents_)
      result.forward += dot(cotangent, values(std::get<Buffer>(list.at(f_.buffers[k].name + parts_.ending))),
                            &result.scale);
  }
  double shifted(double shift) const {
    const std::map<std::string, Argument> list = at(shift);
    const Arguments arguments = named(list);
    device_.launch(parts_.kernel, extent_, arguments);
    double sum = 0;
    for (const auto& [k, cotangent] : cotangents_)
      sum += dot(cotangent, values(std::get<Buffer>(list.at(f_.buffers[k].name))));
    return sum;
  }

  const gradients::Comparison::Parts& parts_;
  const Function& f_;
  const gradients::Roles& roles_;
  const Device& device_;
  Shape extent_;
  bool plain_ = true;  // no 16-bit floats
  std::map<std::string, Argument> given_;
  std::map<size_t, Numbers> directions_, cotangents_;
  std::map<size_t, std::pair<double, double>> scalars_;  // value and direction
};

}  // namespace

namespace gradients {

Comparison::Comparison(const Kernel& kernel, const Differentiation& which)
    : parts_{kernel, tangent(kernel, which), differentiate(kernel, which), traced_form(kernel), {}, {}} {
  parts_.roles = roles_of(parts_.f, which);
  parts_.ending = tangent_ending(parts_.f);
}
KernelGradientCheck Comparison::modes(const Device& device, const Shape& extent, const Arguments& arguments,
                                      uint64_t seed, double step) const {
  return Check(parts_, device, extent, arguments, seed).modes(step);
}
std::vector<Array> Comparison::gradients(const Device& device, const Shape& extent,
                                         const Arguments& arguments, uint64_t seed) const {
  std::vector<Array> results;
  Check(parts_, device, extent, arguments, seed).reverse(results);
  return results;
}
size_t Comparison::instructions() const {
  size_t most = 0;
  for (const Kernel& k : parts_.gradient.kernels()) most = std::max(most, traced_form(k).instructions.size());
  return most;
}

}  // namespace gradients

KernelGradientCheck check_gradient(const Device& device, const Kernel& kernel, const Shape& extent,
                                   const Arguments& arguments, const Differentiation& which, uint64_t seed,
                                   double step) {
  return gradients::Comparison(kernel, which).modes(device, extent, arguments, seed, step);
}

}  // namespace lockstep
