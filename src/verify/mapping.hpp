// Cases with one input and one output vector: how most cases of the kernel language look.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/verify.hpp"
#include "verify/inputs.hpp"

namespace lockstep::cases {

inline std::vector<u32> words(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<u32> values(static_cast<size_t>(count));
  for (u32& v : values) v = random.u32();
  return values;
}

/// A case with one input vector and one output vector of the same type, both of `length(size)` elements.
template <class In, class Out>
struct Mapping {
  std::function<std::vector<In>(int64_t count, uint64_t seed)> input;
  std::function<void(const Device&, int64_t count, const Buffer& in, const Buffer& out)> launch;
  std::function<std::vector<Out>(const std::vector<In>&)> reference;
  std::function<int64_t(int64_t)> outputs = [](int64_t n) { return n; };
};

template <class In, class Out>
Case mapping_case(const std::string& name, std::vector<Kernel> kernels, std::vector<std::string> sizes,
                  Mapping<In, Out> m) {
  Case c;
  c.name = name;
  c.dtype = std::string(lockstep::name(detail::kStorage<In>));
  c.small = std::move(sizes);
  c.bench = {"1048576"};
  c.kernels = [kernels] { return kernels; };
  c.make = [m](const std::string& size, uint64_t seed) {
    const int64_t count = parse_shape(size, 1)[0];
    auto in = std::make_shared<std::vector<In>>(m.input(count, seed));
    CaseProblem p;
    p.bytes = double(count) * sizeof(In) + double(m.outputs(count)) * sizeof(Out);
    p.reference = [=] { return std::vector{Array::of(m.reference(*in))}; };
    p.bind = [=](const Device& device) {
      const Buffer a = device.upload(*in), out = device.allocate<Out>({m.outputs(count)});
      return CaseRun{[=] {
                       device.clear(out);
                       m.launch(device, count, a, out);
                     },
                     [=] { return std::vector{device.download(out)}; }};
    };
    return p;
  };
  return c;
}

}  // namespace lockstep::cases
