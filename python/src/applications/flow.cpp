// Turbulence simulations, the codec, the surrogate, and the whole runs from files to files.
#include "keywords.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/pipeline.hpp"
#include "lockstep/flow/run.hpp"
#include "lockstep/flow/surrogate.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::flow;
using Free = nb::call_guard<nb::gil_scoped_release>;
using Numbers = std::vector<double>;

void take_grid(Keywords& k, BoxGrid& grid) {
  k.take("nx", grid.nx).take("ny", grid.ny).take("lx", grid.lx).take("ly", grid.ly);
}

void take_model(Keywords& k, Model& m) {
  take_grid(k, m.grid);
  k.take("viscosity", m.viscosity)
      .choose("closure", m.closure,
              {Closure::none, Closure::smagorinsky, Closure::leith, Closure::dynamic_smagorinsky,
               Closure::dynamic_leith})
      .take("constant", m.constant)
      .choose("closure_form", m.form,
              {{"divergence", ClosureForm::divergence}, {"simple", ClosureForm::simple}})
      .choose("averaging", m.averaging, {{"global", Averaging::global}, {"local", Averaging::local}})
      .choose("forcing", m.forcing.kind,
              {ForcingKind::none, ForcingKind::kolmogorov, ForcingKind::stochastic})
      .take("forcing_wavenumber", m.forcing.wavenumber)
      .take("forcing_amount", m.forcing.amount)
      .take("forcing_seed", m.forcing.seed)
      .take("drag", m.drag)
      .take("beta", m.beta)
      .take("hyper_viscosity", m.hyper_viscosity)
      .take("hyper_power", m.hyper_power)
      .take("hypo_viscosity", m.hypo_viscosity)
      .take("hypo_power", m.hypo_power)
      .choose("dealias", m.dealias, {Dealias::two_thirds, Dealias::padded, Dealias::filter, Dealias::none})
      .choose("advection", m.advection, {{"stress", Advection::stress}, {"flux", Advection::flux}});
}

void take_stepping(Keywords& k, Stepping& s, const Model& model) {
  k.choose("integrator", s.integrator,
           {Integrator::rk2, Integrator::ssprk3, Integrator::rk4, Integrator::ab3, Integrator::etdrk4});
  if (k.has("dt") && k.has("cfl")) throw InputError("dt and cfl", "lockstep.flow", "one of them");
  k.take("dt", s.dt).take("cfl", s.cfl);
  if (s.cfl > 0) s.dt = std::min(0.1, 0.9 * linear_dt_limit(model, s.integrator));
}

void take_precision(Keywords& k, Storage& precision) {
  k.choose("precision", precision, {{"f32", Storage::f32}, {"f64", Storage::f64}});
}

void take_codec(Keywords& k, CodecOptions& o) {
  k.choose("codec", o.kind, {CodecKind::classic, CodecKind::v2})
      .take("low", o.low)
      .take("middle", o.middle)
      .take("threshold", o.threshold)
      .take("box_points", o.box)
      .take("anchor_count", o.anchor_count)
      .choose("anchors", o.anchors, {{"published", Anchors::published}, {"used", Anchors::used}})
      .take("share", o.share)
      .take("cut", o.cut)
      .take("codec_seed", o.seed);
}

void take_surrogate(Keywords& k, SurrogateOptions& o) {
  k.choose("method", o.method, {SurrogateMethod::ridge, SurrogateMethod::dmd})
      .take("train_share", o.train_share)
      .take("delays", o.delays)
      .take("vectors", o.rank)
      .take("vector_share", o.share)
      .take("ridge", o.lambda);
}

void take_rollout(Keywords& k, RolloutMode& mode) {
  k.choose("rollout", mode, {{"steps", RolloutMode::steps}, {"doubling", RolloutMode::doubling}});
}
void take_decoder(Keywords& k, Decoder& decoder) {
  k.choose("decoder", decoder, {Decoder::mean, Decoder::stochastic});
}

RunOptions run_options(Keywords& k) {
  RunOptions o;
  o.grid_given = k.has("nx");
  take_model(k, o.model);
  take_stepping(k, o.stepping, o.model);
  take_precision(k, o.precision);
  k.take("members", o.members)
      .take("initial", o.initial)
      .take("seed", o.seed)
      .take("steps", o.steps)
      .take("time", o.time)
      .take("save_every", o.save_every)
      .take("out", o.folder)
      .choose("format", o.format, {{"nc", RunOptions::Format::nc}, {"npz", RunOptions::Format::npz}})
      .take("pictures", o.pictures)
      .take("video", o.video)
      .take("checkpoint", o.checkpoint)
      .progress("progress", o.on_progress);
  o.model.forcing.seed = o.seed;
  return o;
}

std::string run_files(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.run");
  const RunOptions options = run_options(k);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(run(*open.context, options));
}
std::string pipeline(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.pipeline");
  PipelineOptions o;
  o.run = run_options(k);
  k.take("stride", o.stride).choose("place", o.place, {Place::device, Place::mixed, Place::cpu});
  take_codec(k, o.codec);
  take_decoder(k, o.decoder);
  take_surrogate(k, o.surrogate);
  take_rollout(k, o.rollout);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(std::vector{run_pipeline(*open.context, o)});
}
std::string encode_file(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.encode");
  EncodeRunOptions o;
  k.take("fields", o.input).take("out", o.output).take("max_error", o.max_error);
  take_codec(k, o.codec);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(encode_run(*open.context, o));
}
std::string decode_file(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.decode");
  DecodeRunOptions o;
  k.take("encoded", o.input).take("out", o.output).take("original", o.original);
  take_decoder(k, o.decoder);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(decode_run(*open.context, o));
}
std::string learn_file(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.learn");
  LearnRunOptions o;
  k.take("latents", o.input).take("out", o.output);
  take_surrogate(k, o.surrogate);
  take_rollout(k, o.rollout);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(learn_run(*open.context, o));
}
std::string rollout_file(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.flow.rollout");
  RolloutRunOptions o;
  k.take("model", o.input).take("out", o.output).take("steps", o.steps);
  take_rollout(k, o.rollout);
  k.done();
  const nb::gil_scoped_release free;
  return to_json(rollout_run(*open.context, o));
}

nb::list budgets_of(const Solver& solver) {
  auto all = freely([&] { return solver.budget(); });
  nb::list rows;
  for (const Budget& b : all) {
    nb::dict row;
    row["energy"] = b.energy, row["enstrophy"] = b.enstrophy, row["palinstrophy"] = b.palinstrophy;
    rows.append(row);
  }
  return rows;
}
nb::list spectra_of(const Solver& solver) {
  auto all = freely([&] { return solver.spectra(); });
  nb::list rows;
  for (Spectra& s : all) {
    nb::dict row;
    const size_t n = s.energy.size();
    row["energy"] = to_numpy(std::move(s.energy), {n});
    row["enstrophy"] = to_numpy(std::move(s.enstrophy), {n});
    row["energy_flux"] = to_numpy(std::move(s.energy_flux), {n});
    row["enstrophy_flux"] = to_numpy(std::move(s.enstrophy_flux), {n});
    rows.append(row);
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

void bind_solver(nb::module_& module) {
  nb::class_<Solver>(module, "FlowSolver")
      .def("__init__",
           [](Solver* self, const OpenDevice& open, const nb::dict& given) {
             Keywords k(given, "lockstep.flow.Simulation");
             Model model;
             Stepping stepping;
             Storage precision = Storage::f32;
             int64_t members = 1;
             take_model(k, model);
             take_stepping(k, stepping, model);
             take_precision(k, precision);
             k.take("members", members).done();
             const nb::gil_scoped_release free;
             new (self) Solver(open.device(), model, stepping, precision, members);
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
    Keywords k(given, "lockstep.flow.initial_field");
    BoxGrid grid;
    Initial which = Initial::mcwilliams;
    uint64_t seed = 0;
    take_grid(k, grid);
    k.choose("initial", which,
             {Initial::mcwilliams, Initial::vortices, Initial::noise, Initial::taylor_green, Initial::shear})
        .take("seed", seed)
        .done();
    return to_numpy(freely([&] { return initial_field(grid, which, seed); }));
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
      .def_prop_ro("cut", [](const EncodedFields& e) { return e.plan.options.cut; })
      .def_prop_ro("kind", [](const EncodedFields& e) { return std::string(name(e.plan.options.kind)); })
      .def(
          "write", [](const EncodedFields& e, const std::string& file) { return write_encoded(file, e); },
          Free());
  module.def("flow_encode", [](OpenDevice& open, const nb::object& fields, const nb::dict& given) {
    Keywords k(given, "lockstep.flow.encode");
    CodecOptions options;
    std::optional<double> max_error;
    Numbers time;
    k.take("max_error", max_error).take("time", time).take("lx", options.grid.lx).take("ly", options.grid.ly);
    take_codec(k, options);
    k.done();
    const Array array = array_of(fields, "lockstep.flow.encode, argument fields");
    if (array.rank() == 3) options.grid.ny = array.size(1), options.grid.nx = array.size(2);
    if (!time.empty() && int64_t(time.size()) != array.size(0))
      throw InputError(std::to_string(time.size()) + " times", "lockstep.flow.encode, argument time",
                       std::to_string(array.size(0)) + ", one for each frame");
    for (int64_t frame = int64_t(time.size()); frame < array.size(0); ++frame) time.push_back(double(frame));
    const nb::gil_scoped_release free;
    EncodedFields encoded = open.context->stage("flow.encode", [&](const Device& device) {
      return encode_fields(device, options, array, max_error);
    });
    encoded.time = time;
    return encoded;
  });
  module.def("flow_decode", [](OpenDevice& open, const EncodedFields& encoded, const nb::dict& given) {
    Keywords k(given, "lockstep.flow.decode");
    Decoder decoder = Decoder::mean;
    take_decoder(k, decoder);
    k.done();
    return to_numpy(freely([&] {
      return open.context->stage(
          "flow.decode", [&](const Device& device) { return decode_fields(device, encoded, decoder); });
    }));
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
  Keywords k(given, "lockstep.flow.Surrogate.rollout");
  Storage precision = Storage::f32;
  RolloutMode mode = RolloutMode::doubling;
  take_precision(k, precision);
  take_rollout(k, mode);
  k.done();
  const Array from = array_of(start, "lockstep.flow.Surrogate.rollout, argument start");
  return to_numpy(freely([&] {
    return open.context->stage("flow.rollout", [&](const Device& device) {
      Rollout rollout(device, model, precision);
      rollout.start(device.upload(from.to(precision)));
      const int64_t members = from.size(0) / model.options.delays;
      const Buffer out = device.allocate(precision, {steps * members, model.latent_size});
      rollout.run(out, mode);
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
    Keywords k(given, "lockstep.flow.learn");
    SurrogateOptions options;
    take_surrogate(k, options);
    k.done();
    const Array array = array_of(latents, "lockstep.flow.learn, argument latents");
    const nb::gil_scoped_release free;
    return learn(array, options);
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
  const auto command = [&](const char* name, auto work) {
    module.def(name,
               [work](OpenDevice& open, const nb::dict& given) { return from_json(work(open, given)); });
  };
  command("flow_run", &run_files);
  command("flow_pipeline", &pipeline);
  command("flow_encode_file", &encode_file);
  command("flow_decode_file", &decode_file);
  command("flow_learn_file", &learn_file);
  command("flow_rollout_file", &rollout_file);
  module.def("flow_compare", [](const std::string& a, const std::string& b) {
    return from_json(freely([&] { return to_json(compare_runs(a, b)); }));
  });
}

}  // namespace lockstep::python
