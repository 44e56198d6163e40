// The cases of `lockstep verify` and `bench`.
#include <algorithm>

#include "bind.hpp"
#include "registry.hpp"

namespace lockstep::python {
namespace {

nb::dict row_of(const VerifyRow& row) {
  const Comparison& c = row.comparison;
  nb::dict d;
  d["case"] = row.name;
  d["size"] = row.size;
  d["dtype"] = row.dtype;
  d["elements"] = c.elements;
  d["differing_bits"] = c.differing_bits;
  d["differing_elements"] = c.differing_elements;
  d["max_abs"] = c.max_abs;
  d["mean_abs"] = c.mean_abs;
  d["rel_l2"] = c.rel_l2;
  d["max_ulp"] = c.max_ulp;
  d["finite_equal"] = c.finite_equal;
  d["bound"] = row.bound;
  d["pass"] = row.pass;
  d["skipped"] = row.skipped;
  return d;
}
nb::dict row_of(const BenchRow& row, const std::string& device, double copy_gbps) {
  nb::dict d;
  d["case"] = row.name;
  d["size"] = row.size;
  d["dtype"] = row.dtype;
  d["device"] = device;
  d["median_ms"] = row.median_ms;
  d["p95_ms"] = row.p95_ms;
  d["mean_ms"] = row.mean_ms;
  d["min_ms"] = row.min_ms;
  d["bytes"] = row.bytes;
  d["gbps"] = row.gbps;
  d["copy_gbps"] = copy_gbps;
  d["share_of_copy"] = row.share_of_copy;
  d["gflops"] = row.gflops;
  d["reference_ms"] = row.reference_ms;
  d["iterations"] = row.iterations;
  d["skipped"] = row.skipped;
  return d;
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
