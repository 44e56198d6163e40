// The cases of `lockstep verify` and `bench`.
#include <algorithm>

#include "bind.hpp"
#include "registry.hpp"

namespace lockstep::python {
namespace {

nb::dict row_of(const VerifyRow& row) {
  const Comparison& c = row.comparison;
  return dict_of("case", row.name, "size", row.size, "dtype", row.dtype, "elements", c.elements,
                 "differing_bits", c.differing_bits, "differing_elements", c.differing_elements, "max_abs",
                 c.max_abs, "mean_abs", c.mean_abs, "rel_l2", c.rel_l2, "max_ulp", c.max_ulp, "finite_equal",
                 c.finite_equal, "bound", row.bound, "pass", row.pass, "skipped", row.skipped);
}
nb::dict row_of(const BenchRow& row, const std::string& device, double copy_gbps) {
  return dict_of("case", row.name, "size", row.size, "dtype", row.dtype, "device", device, "median_ms",
                 row.median_ms, "p95_ms", row.p95_ms, "mean_ms", row.mean_ms, "min_ms", row.min_ms, "bytes",
                 row.bytes, "gbps", row.gbps, "copy_gbps", copy_gbps, "share_of_copy", row.share_of_copy,
                 "gflops", row.gflops, "reference_ms", row.reference_ms, "iterations", row.iterations,
                 "skipped", row.skipped);
}

void stop_at_ctrl_c() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void bind_cases(nb::module_& module) {
  module.def("case_names", [] {
    std::vector<std::string> names;
    for (const Case& c : all_cases().all()) names.push_back(c.name);
    return names;
  });
  module.def("verify_cases",
             [](const OpenDevice& open, const std::string& prefix, const std::string& against,
                const OpenDevice& other, const std::vector<std::string>& sizes, uint64_t seed) {
               std::vector<VerifyRow> found;
               {
                 const nb::gil_scoped_release free;
                 const Against with = against == "reference" ? Against::reference
                                      : against == "interp"  ? Against::interp
                                                             : Against::cpu;
                 for (const Case* c : all_cases().match(prefix))
                   for (const std::string& size : sizes.empty() ? c->small : sizes) {
                     stop_at_ctrl_c();
                     found.push_back(verify_case(*c, size, open.device(), with, other.device(), seed));
                   }
               }
               nb::list rows;
               for (const VerifyRow& row : found) rows.append(row_of(row));
               return rows;
             });
  module.def("bench_cases", [](const OpenDevice& open, const std::string& prefix,
                               const std::vector<std::string>& sizes, int iterations, int warmup) {
    std::vector<BenchRow> found;
    double copy = 0;
    {
      const nb::gil_scoped_release free;
      copy = measure_copy_gbps(open.device());
      for (const Case* c : all_cases().match(prefix))
        for (const std::string& size : sizes.empty() ? c->bench : sizes) {
          stop_at_ctrl_c();
          found.push_back(bench_case(*c, size, open.device(), copy, {iterations, warmup, false}));
        }
    }
    nb::list rows;
    for (const BenchRow& row : found) rows.append(row_of(row, open.device().info().name, copy));
    return rows;
  });
}

}  // namespace lockstep::python
