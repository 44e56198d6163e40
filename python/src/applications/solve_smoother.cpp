// Binding of Smoother.
#include <cmath>

#include "applications/solve_terms.hpp"
#include "lockstep/solve/smoother.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::solve;

std::vector<BlockSet> handles_of(const std::vector<int>& sets) {
  std::vector<BlockSet> out;
  for (const int id : sets) out.push_back({id});
  return out;
}

int smoother_kind(Smoother& s, const std::string& name, const std::vector<int>& slots, int data,
                  nb::object residual, const nb::object& loss, const std::vector<int>& sets) {
  TermType type{name, slots, data, residual_of(std::move(residual), slots), loss_of(loss)};
  return s.add_kind(type, handles_of(sets)).id;
}

int smoother_host_kind(Smoother& s, const std::string& name, const std::vector<int>& slots, int data,
                       int residuals, nb::object residual, nb::object jacobian, const nb::object& loss,
                       const std::vector<int>& sets) {
  HostTerm type;
  type.name = name, type.slots = slots, type.data = data, type.residuals = residuals;
  type.residual = host_function(std::move(residual));
  type.jacobian = host_function(std::move(jacobian));
  type.loss = loss_of(loss), type.parallel = false;
  return s.add_kind(type, handles_of(sets)).id;
}

nb::object smoother_covariance(const Smoother& s, const std::vector<std::pair<int, int64_t>>& blocks) {
  std::vector<std::pair<BlockSet, int64_t>> list;
  for (const auto& [set, block] : blocks) list.push_back({BlockSet{set}, block});
  std::vector<double> matrix = s.covariance(list);
  const auto n = size_t(std::llround(std::sqrt(double(matrix.size()))));
  return to_numpy(std::move(matrix), {n, n});
}

nb::object smoother_values(const Smoother& s, int set, int64_t size) {
  std::vector<double> values = freely([&] { return s.values({set}); });
  const size_t rows = values.size() / size_t(size);
  return to_numpy(std::move(values), {rows, size_t(size)});
}

}  // namespace

void bind_smoother(nb::module_& module) {
  nb::class_<Smoother>(module, "Smoother")
      .def(
          "__init__",
          [](Smoother* self, OpenDevice& open, double lag, double relinearize, double propagate) {
            new (self) Smoother(*open.context, {lag, relinearize, propagate});
          },
          nb::keep_alive<1, 2>())
      .def("add_set", [](Smoother& s, const std::string& name, const std::string& manifold, int size,
                         double unit) { return s.add_set(name, manifold_of(manifold, size), unit).id; })
      .def("append_blocks", [](Smoother& s, int set, const Matrix<double>& values,
                               double time) { return s.append_blocks({set}, span_of(values), time); })
      .def("touch", [](Smoother& s, int set, int64_t block, double time) { s.touch({set}, block, time); })
      .def("fix", [](Smoother& s, int set, int64_t block) { s.fix({set}, block); })
      .def("fix_coordinates", [](Smoother& s, int set, int64_t block,
                                 const std::vector<int>& which) { s.fix_coordinates({set}, block, which); })
      .def("bound", [](Smoother& s, int set, int64_t block, int component, double lower,
                       double upper) { s.bound({set}, block, component, lower, upper); })
      .def("add_kind", &smoother_kind)
      .def("add_host_kind", &smoother_host_kind, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none(), nb::arg(), nb::arg())
      .def("add_terms",
           [](Smoother& s, int kind, const Matrix<int32_t>& indices, const Matrix<double>& data) {
             return s.add_terms({kind}, span_of(indices), span_of(data)).id;
           })
      .def("erase", [](Smoother& s, int terms) { s.erase(TermSet{terms}); })
      .def("weigh", [](Smoother& s, int terms,
                       const std::vector<double>& weights) { s.weigh(TermSet{terms}, weights); })
      .def("update",
           [](Smoother& s) {
             const SmootherUpdate u = freely([&] { return s.update(); });
             return dict_of("relinearized", u.relinearized, "eliminated", u.eliminated, "cliques", u.cliques,
                            "left", u.left);
           })
      .def("solve", [](Smoother& s, int most) { return freely([&] { return s.solve(most); }); })
      .def("value",
           [](const Smoother& s, int set, int64_t block) {
             std::vector<double> value = s.value({set}, block);
             const size_t size = value.size();
             return to_numpy(std::move(value), {size});
           })
      .def("values", &smoother_values)
      .def("block_numbers", [](const Smoother& s, int set) { return s.block_numbers({set}); })
      .def("instance_count", &Smoother::instance_count)
      .def("cost", [](const Smoother& s) { return freely([&] { return s.cost(); }); })
      .def("covariance", &smoother_covariance)
      .def("problem", [](const Smoother& s) { return freely([&] { return s.problem(); }); })
      .def("bytes", &Smoother::bytes);
}

}  // namespace lockstep::python
