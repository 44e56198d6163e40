// The program with cases that are wrong in ways that do not change their results: only `--check` sees them.
#include "lockstep/kernel.hpp"
#include "registry.hpp"

namespace lockstep {
namespace {

constexpr int64_t kPoints = 64;
using G1 = Grid<f32, 1>;
using O1 = Out<f32, 1>;

/// A kernel of one buffer read and one written, whose elements become 1.
Case ones(const std::string& name, const Kernel& kernel, int64_t extent, bool written) {
  Case c;
  c.name = name;
  c.small = {"64"};
  c.kernels = [=] { return std::vector{kernel}; };
  c.make = [=](const std::string&, uint64_t) {
    CaseProblem problem;
    problem.reference = [] { return std::vector{Array::of(std::vector<f32>(kPoints, 1.0f))}; };
    problem.bind = [=](const Device& device) {
      const std::vector<f32> held(kPoints, 1.0f);
      const Buffer from = written ? device.upload(held) : device.allocate<f32>({kPoints}),
                   to = device.upload(held);
      return CaseRun{[=] { device.launch(kernel, {extent}, from, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return problem;
  };
  return c;
}

CaseRegistry made() {
  CaseRegistry cases;
  const Kernel right =
      kernel("check.right", [](At<1> at, G1 a, O1 b) { b[at] = select(a[at] > 0.0f, 1.0f, 1.0f); });
  const Kernel race =
      kernel("check.race", [](At<1> at, G1 a, O1 b) { b[at.x / 2] = select(a[at] > 0.0f, 1.0f, 1.0f); });
  const Kernel outside =
      kernel("check.outside", [](At<1> at, G1 a, O1 b) { b[at] = select(a(at.x + 1) > 0.0f, 1.0f, 1.0f); });
  const Kernel unwritten =
      kernel("check.unwritten", [](At<1> at, G1 a, O1 b) { b[at] = select(a[at] > 0.0f, 1.0f, 1.0f); });
  const Kernel claim = kernel("check.claim",
                              [](Group<1> g, G1 a, O1 b) {
                                const Val<i32> n = uniform(g.lane() / 32);
                                b[g.global()] = select(a[g.global()] > cast<f32>(n), 1.0f, 1.0f);
                              },
                              {.group = {64}});
  cases.add(ones("check.right", right, kPoints, true));
  cases.add(ones("check.race", race, kPoints, true));
  cases.add(ones("check.outside", outside, kPoints, true));
  cases.add(ones("check.unwritten", unwritten, kPoints, false));
  cases.add(ones("check.claim", claim, 1, true));
  return cases;
}

}  // namespace

const CaseRegistry& all_cases() {
  static const CaseRegistry cases = made();
  return cases;
}
std::vector<const Case*> select_cases(const std::vector<std::string>& names) {
  std::vector<const Case*> selected;
  for (const std::string& name : names)
    for (const Case* c : all_cases().match(name)) selected.push_back(c);
  return selected;
}
std::vector<Kernel> all_kernels() {
  std::vector<Kernel> kernels;
  for (const Case& c : all_cases().all()) kernels.push_back(c.kernels().front());
  return kernels;
}

std::vector<variants::Subject> select_variants(const std::vector<std::string>&) { return {}; }

}  // namespace lockstep
