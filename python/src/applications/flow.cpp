// Turbulence simulations, the codec, the surrogate, and the whole runs from files to files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arrays.hpp"
#include "core/record/identity.hpp"
#include "documents.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/pipeline.hpp"
#include "lockstep/flow/run.hpp"
#include "lockstep/flow/surrogate.hpp"
#include "option_values.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::flow;
using Free = nb::call_guard<nb::gil_scoped_release>;
using Numbers = std::vector<double>;

/// Options of what only Python calls by itself.
struct InitialOptions {
  BoxGrid grid;
  Initial initial = Initial::mcwilliams;
  uint64_t seed = 0;
};
void describe(Schema<InitialOptions>& s) {
  s.of("flow::initial_field");
  s.include(&InitialOptions::grid);
  s.option("initial", &InitialOptions::initial, "which field");
  s.option("seed", &InitialOptions::seed, "of random fields");
}
struct PredictOptions {
  Storage precision = Storage::f32;
  RolloutMode rollout = RolloutMode::doubling;
};
void describe(Schema<PredictOptions>& s) {
  s.of("flow::Rollout");
  s.option("precision", &PredictOptions::precision, "of the states", precisions());
  s.option("rollout", &PredictOptions::rollout, "by single steps, or by blocks of doubling length");
}

/// The call of a command: JSON of what the library's function gives.
template <class Options, class Work>
nb::object call(OpenDevice& open, const nb::dict& arguments, const char* name, Work work) {
  return from_document(with_options<Options>(
      arguments, name, [&](const Options& options) { return document_of(work(*open.context, options)); }));
}

nb::object run_files(OpenDevice& open, const nb::dict& arguments) {
  return from_document(with_options<RunOptions>(arguments, "lockstep.flow.run",
                                                [&, progress = progress_of(arguments)](RunOptions& options) {
                                                  options.on_progress = progress;
                                                  return document_of(run(*open.context, options));
                                                },
                                                {"progress"}));
}

nb::list budgets_of(const Solver& solver) {
  nb::list rows;
  for (const Budget& b : freely([&] { return solver.budget(); }))
    rows.append(dict_of("energy", b.energy, "enstrophy", b.enstrophy, "palinstrophy", b.palinstrophy));
  return rows;
}
nb::list spectra_of(const Solver& solver) {
  auto all = freely([&] { return solver.spectra(); });
  nb::list rows;
  for (Spectra& s : all) {
    const size_t n = s.energy.size();
    rows.append(dict_of("energy", to_numpy(std::move(s.energy), {n}), "enstrophy",
                        to_numpy(std::move(s.enstrophy), {n}), "energy_flux",
                        to_numpy(std::move(s.energy_flux), {n}), "enstrophy_flux",
                        to_numpy(std::move(s.enstrophy_flux), {n})));
  }
  return rows;
}
using NamedArrays = std::vector<std::pair<std::string, Array>>;
nb::dict dictionary_of(const NamedArrays& arrays) {
  nb::dict d;
  for (const auto& [name, array] : arrays) d[nb::str(name.c_str())] = to_numpy(array);
  return d;
}
NamedArrays arrays_of(const nb::dict& given, const char* where) {
  NamedArrays arrays;
  for (const auto& [key, value] : given)
    arrays.emplace_back(nb::cast<std::string>(key),
                        array_of(nb::borrow(value), where + (", array " + nb::cast<std::string>(key))));
  return arrays;
}

/// The settings that decide on the results of a simulation, for its state.
std::string settings_of(const nb::dict& given) {
  return with_options<SolverOptions>(given, "lockstep.flow.Simulation", [](const SolverOptions& o) {
    record::Identity id("flow.Simulation");
    for (const Option& option : schema_of<SolverOptions>().options())
      if (option.effect == Effect::result) id.option(option.name, text_of(option.get(&o)));
    return id.to_json();
  });
}
void expect_settings(const std::string& saved, const std::string& now) {
  constexpr auto kWhere = "lockstep.flow.Simulation.load_state_dict, array settings";
  const auto read = [&](const std::string& text) {
    return record::Identity::from_json(io::parse_json(text, kWhere), kWhere);
  };
  if (const auto lines = read(saved).differences(read(now)); !lines.empty())
    throw InputError(fmt::format("a state of other settings: {}", fmt::join(lines, "; ")), kWhere,
                     "those of this simulation, or strict=False");
}

void bind_solver(nb::module_& module) {
  module.def("flow_settings", &settings_of);
  module.def("flow_expect_settings", &expect_settings);
  nb::class_<Solver>(module, "FlowSolver")
      .def("__init__",
           [](Solver* self, const OpenDevice& open, const nb::dict& given) {
             with_options<SolverOptions>(given, "lockstep.flow.Simulation", [&](const SolverOptions& o) {
               new (self) Solver(open.device(), o.model, o.stepping, o.precision, o.members);
             });
           })
      .def("set_vorticity",
           [](Solver& s, const nb::object& w) {
             const Array array = array_of(w, "lockstep.flow.Simulation, argument vorticity");
             freely([&] { s.set_vorticity(array); });
           })
      .def("advance",
           [](Solver& s, int64_t steps) {
             constexpr int64_t kAtOnce = 10;  // between looks at Ctrl-C
             for (; steps > kAtOnce; steps -= kAtOnce) {
               freely([&] { s.advance(kAtOnce); });
               if (PyErr_CheckSignals() != 0) throw nb::python_error();
             }
             freely([&] { s.advance(steps); });
           })
      .def("set_end", &Solver::set_end)
      .def("vorticity", [](const Solver& s) { return to_numpy(freely([&] { return s.vorticity(); })); })
      .def(
          "vorticity_into", [](const Solver& s, const Buffer& out) { s.vorticity(out); }, Free())
      .def("last_sound_vorticity",
           [](const Solver& s) { return to_numpy(freely([&] { return s.last_sound_vorticity(); })); })
      .def("budget", &budgets_of)
      .def("spectra", &spectra_of)
      .def("times", &Solver::times, Free())
      .def("steps", &Solver::steps, Free())
      .def("smallest_dt", &Solver::smallest_dt, Free())
      .def("courant", &Solver::courant, Free())
      .def("blown_up",
           [](const Solver& s) {
             nb::list rows;
             for (const BlowUp& b : freely([&] { return s.blown_up(); }))
               rows.append(nb::make_tuple(b.member, b.step));
             return rows;
           })
      .def("state", [](const Solver& s) { return dictionary_of(freely([&] { return s.state(); })); })
      .def("set_state", [](Solver& s, const nb::dict& given) {
        const NamedArrays arrays = arrays_of(given, "lockstep.flow.Simulation");
        freely([&] { s.set_state(arrays); });
      });
  module.def("flow_initial", [](const nb::dict& given) {
    return to_numpy(with_options<InitialOptions>(
        given, "lockstep.flow.initial_field",
        [](const InitialOptions& o) { return initial_field(o.grid, o.initial, o.seed); }));
  });
}

void bind_codec(nb::module_& module) {
  nb::class_<EncodedFields>(module, "EncodedFields")
      .def_ro("frames", &EncodedFields::frames)
      .def_ro("members", &EncodedFields::members)
      .def_ro("max_error", &EncodedFields::max_error)
      .def_prop_ro(
          "grid",
          [](const EncodedFields& e) { return std::pair(e.plan.options.grid.ny, e.plan.options.grid.nx); })
      .def_prop_ro("kind", [](const EncodedFields& e) { return std::string(name(e.plan.options.kind)); })
      .def(
          "write", [](const EncodedFields& e, const std::string& file) { return write_encoded(file, e); },
          Free());
  module.def("flow_encode", [](OpenDevice& open, const nb::object& fields, const nb::dict& given) {
    constexpr auto kName = "lockstep.flow.encode";
    BoxGrid grid;
    Numbers time;
    const auto take = [&](const char* name, auto& to) {
      if (given.contains(name)) to = nb::cast<std::decay_t<decltype(to)>>(given[name]);
    };
    take("time", time), take("lx", grid.lx), take("ly", grid.ly);
    const Array array = array_of(fields, "lockstep.flow.encode, argument fields");
    if (array.rank() == 3) grid.ny = array.size(1), grid.nx = array.size(2);
    if (!time.empty() && int64_t(time.size()) != array.size(0))
      throw InputError(std::to_string(time.size()) + " times", "lockstep.flow.encode, argument time",
                       std::to_string(array.size(0)) + ", one for each frame");
    for (int64_t frame = int64_t(time.size()); frame < array.size(0); ++frame) time.push_back(double(frame));
    EncodedFields encoded =
        with_options<EncodeRunOptions>(given, kName,
                                       [&](EncodeRunOptions& o) {
                                         o.codec.grid = grid;
                                         return open.context->stage("flow.encode", [&](const Device& device) {
                                           return encode_fields(device, o.codec, array, o.max_error);
                                         });
                                       },
                                       {"time", "lx", "ly"}, {"fields", "out"});
    encoded.time = time;
    return encoded;
  });
  module.def("flow_decode", [](OpenDevice& open, const EncodedFields& encoded, const nb::dict& given) {
    return to_numpy(with_options<DecodeRunOptions>(given, "lockstep.flow.decode",
                                                   [&](const DecodeRunOptions& o) {
                                                     return open.context->stage(
                                                         "flow.decode", [&](const Device& device) {
                                                           return decode_fields(device, encoded, o.decoder);
                                                         });
                                                   },
                                                   {}, {"encoded", "out"}));
  });
  module.def("flow_latents", [](OpenDevice& open, const EncodedFields& encoded) {
    return to_numpy(freely([&] {
      return open.context->stage("flow.decode",
                                 [&](const Device& device) { return latents_of(device, encoded); });
    }));
  });
  module.def("flow_read", [](const std::string& file) { return read_encoded(file); }, Free());
}

nb::object rollout_of(OpenDevice& open, const Surrogate& model, const nb::object& start, int64_t steps,
                      const nb::dict& given) {
  constexpr auto kName = "lockstep.flow.Surrogate.rollout";
  const std::string where = std::string(kName) + ", argument start";
  const Array from = array_of(start, where);
  if (const auto at = first_not_finite(from.packed()))
    throw InputError("a number is not finite at " + index_text(from.shape(), *at), where, "finite numbers");
  return to_numpy(with_options<PredictOptions>(given, kName, [&](const PredictOptions& o) {
    return open.context->stage("flow.rollout", [&](const Device& device) {
      Rollout rollout(device, model, o.precision);
      rollout.start(device.upload(from.to(o.precision)));
      const int64_t members = from.size(0) / model.options.delays;
      const Buffer out = device.allocate(o.precision, {steps * members, model.latent_size});
      rollout.run(out, o.rollout);
      return device.download(out);
    });
  }));
}

void bind_surrogate(nb::module_& module) {
  nb::class_<Surrogate>(module, "Surrogate")
      .def_ro("latent_size", &Surrogate::latent_size)
      .def_ro("rank", &Surrogate::rank)
      .def_ro("train_frames", &Surrogate::train_frames)
      .def_prop_ro("delays", [](const Surrogate& s) { return s.options.delays; })
      .def_prop_ro("basis", [](const Surrogate& s) { return to_numpy(s.basis); })
      .def_prop_ro("step", [](const Surrogate& s) { return to_numpy(s.step); })
      .def_prop_ro("climatology", [](const Surrogate& s) { return to_numpy(s.climatology); })
      .def_prop_ro("last", [](const Surrogate& s) { return to_numpy(s.last); })
      .def("eigenvalues",
           [](const Surrogate& s) {
             nb::list all;
             for (const std::complex<double>& e : eigenvalues(s))
               all.append(nb::make_tuple(e.real(), e.imag()));
             return all;
           })
      .def("arrays", [](const Surrogate& s) { return dictionary_of(to_arrays(s)); });
  module.def("flow_learn", [](const nb::object& latents, const nb::dict& given) {
    const Array array = array_of(latents, "lockstep.flow.learn, argument latents");
    return with_options<SurrogateOptions>(given, "lockstep.flow.learn",
                                          [&](const SurrogateOptions& o) { return learn(array, o); });
  });
  module.def("flow_surrogate", [](const nb::dict& given, const std::string& where) {
    return surrogate_from(arrays_of(given, "lockstep.flow.Surrogate"), where);
  });
  module.def("flow_rollout", &rollout_of);
}

}  // namespace

void bind_flow(nb::module_& module) {
  bind_solver(module);
  bind_codec(module);
  bind_surrogate(module);
  module.def("flow_run", &run_files);
  module.def("flow_pipeline", [](OpenDevice& open, const nb::dict& given) {
    return call<PipelineSweep>(
        open, given, "lockstep.flow.pipeline",
        [](Context& context, const PipelineSweep& o) { return run_sweep(context, o); });
  });
  module.def("flow_encode_file", [](OpenDevice& open, const nb::dict& given) {
    return call<EncodeRunOptions>(open, given, "lockstep.flow.encode", &encode_run);
  });
  module.def("flow_decode_file", [](OpenDevice& open, const nb::dict& given) {
    return call<DecodeRunOptions>(open, given, "lockstep.flow.decode", &decode_run);
  });
  module.def("flow_learn_file", [](OpenDevice& open, const nb::dict& given) {
    return call<LearnRunOptions>(open, given, "lockstep.flow.learn", &learn_run);
  });
  module.def("flow_rollout_file", [](OpenDevice& open, const nb::dict& given) {
    return call<RolloutRunOptions>(open, given, "lockstep.flow.rollout", &rollout_run);
  });
  module.def("flow_compare", [](const std::string& a, const std::string& b) {
    return from_document(freely([&] { return document_of(compare_runs(a, b)); }));
  });
}

}  // namespace lockstep::python
