// The content of a problem, for Python.
#include "applications/solve_terms.hpp"
#include "lockstep/solve/content.hpp"

namespace lockstep::python {

using namespace lockstep::solve;

void bind_content(nb::module_& module) {
  module.def("block_sets", [](const Problem& p) {
    nb::list out;
    for (const BlockSetContent& s : block_sets(p))
      out.append(dict_of("blocks", s.set.id, "name", s.name, "manifold", s.manifold, "numbers", s.numbers,
                         "coordinates", s.coordinates, "count", s.blocks));
    return out;
  });
  module.def("term_sets", [](const Problem& p) {
    nb::list out;
    for (const TermSetContent& t : term_sets(p))
      out.append(dict_of("terms", t.terms.id, "name", t.name, "instances", t.instances, "enabled", t.enabled,
                         "residuals", t.residuals, "data", t.data, "loss", t.loss, "energy", t.energy, "host",
                         t.host, "weighted", t.weighted));
    return out;
  });
  module.def("instance_content", [](const Problem& p, int terms, int64_t instance) {
    const InstanceContent found = instance_content(p, {terms}, instance);
    nb::list blocks;
    for (const InstanceContent::Slot& s : found.blocks)
      blocks.append(nb::make_tuple(s.slot, s.set.id, s.block));
    nb::dict data;
    for (const auto& [number, value] : found.data) data[nb::cast(number)] = value;
    return dict_of("blocks", blocks, "data", data, "weight", found.weight, "enabled", found.enabled);
  });
  module.def("instances_of", [](const Problem& p, int set, int64_t block) {
    nb::list out;
    for (const auto& [terms, instance] : instances_of(p, {set}, block))
      out.append(nb::make_tuple(terms.id, instance));
    return out;
  });
  module.def("block_content", [](const Problem& p, int set, int64_t block) {
    const BlockContent found = block_content(p, {set}, block);
    return dict_of("fixed", found.fixed, "held", found.held, "lower", found.lower, "upper", found.upper);
  });
}

}  // namespace lockstep::python
