// Names and options of solve's commands.
#include <array>

#include "core/schema/assignments.hpp"
#include "core/schema/shell_flags.hpp"
#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/run.hpp"
#include "solve/options/texts.hpp"

namespace lockstep::solve {

std::span<const Choice<PoseStart>> choices(PoseStart) {
  using enum PoseStart;
  static constexpr auto kAll =
      std::to_array<Choice<PoseStart>>({{"file", file}, {"tree", tree}, {"chordal", chordal}});
  return kAll;
}
std::span<const Choice<MeshColor>> choices(MeshColor) {
  using enum MeshColor;
  static constexpr auto kAll = std::to_array<Choice<MeshColor>>(
      {{"plain", plain}, {"displacement", displacement}, {"curvature", curvature}});
  return kAll;
}
std::span<const Choice<UpAxis>> choices(UpAxis) {
  static constexpr auto kAll =
      std::to_array<Choice<UpAxis>>({{"x", UpAxis::x}, {"y", UpAxis::y}, {"z", UpAxis::z}});
  return kAll;
}

namespace {

template <class Run>
OptionBuilder add_input(Schema<Run>& s, const char* help) {
  return s.option("file", &Run::file, help).flag("FILE").file(Option::Use::input).positional();
}
template <class Run>
OptionBuilder add_output(Schema<Run>& s, const char* name, std::string Run::* member, const char* help,
                         std::vector<std::string> endings) {
  return s.option(name, member, help)
      .file(Option::Use::output_file, std::move(endings))
      .shown("FILE")
      .effect(Effect::display);
}
template <class Run>
void add_residuals(Schema<Run>& s) {
  add_output(s, "residuals", &Run::residuals,
             "CSV by edge or observation: term, instance, norm of the residual, weight from the robust loss",
             {".csv", ".txt"});
}
/// These are options of the shell too: the problems are large, or have several sets of blocks.
template <class Run>
void add_parts(Schema<Run>& s) {
  for (const char* option : {"parts", "order", "inner_groups"}) s.change(option).in_shell(true);
}
/// The robust loss may begin wide.
template <class Run>
void add_graduation(Schema<Run>& s) {
  s.change("graduation").in_shell(true);
  s.useless(
      "graduation",
      [](const Run& o) {
        const bool has_scale =
            o.loss.kind != RobustLoss::Kind::none && o.loss.kind != RobustLoss::Kind::expression;
        return o.options.graduation.factor != 0 && !has_scale;
      },
      "it has no effect with this {loss}", "{loss} with a scale");
}

template <class Run>
void add_loss(Schema<Run>& s) {
  s.text(
       "loss", &Run::loss,
       "robust loss: none, or huber, cauchy, tukey, geman_mcclure, arctan, soft_l1 with a scale: huber:1.5; "
       "tolerant:A,B",
       "none, or huber, cauchy, tukey, geman_mcclure, arctan or soft_l1 with a positive scale as in "
       "huber:1.5, "
       "or tolerant:A,B",
       &to_text, &parse_robust_loss)
      .flag("robust")
      .shown("LOSS")
      .parts(":")
      .example("huber:1.5");
}

/// A model and the data it is fitted to, but for the first file.
template <class Run>
void add_fit_model(Schema<Run>& s) {
  s.option("others", &Run::others, "more data sets with the same columns")
      .flag("FILES")
      .file(Option::Use::input)
      .positional();
  s.option("model", &Run::model,
           "formula over columns and parameters, also of line shapes: gaussian(t) + linear(t)")
      .shown("FORMULA");
  s.option("x", &Run::x, "columns in the model").shown("NAMES").or_else("all columns of the model but {y}");
  s.option("y", &Run::y, "column of the response").shown("NAME");
  s.option("sigma", &Run::sigma, "column of the response's standard deviations").shown("NAME");
  s.text("initial", &Run::initial, "initial parameters, a=1,b=2; others are searched for",
         "NAME=NUMBER between commas", &print_assignments, &read_assignments)
      .shown("LIST")
      .parts()
      .example("a=1,b=2");
  s.text("bounds", &Run::bounds, "limits of parameters, a=0:10,b=-inf:0", "NAME=LOW:HIGH between commas",
         &print_ranges, &read_ranges)
      .shown("LIST")
      .parts()
      .example("a=0:10,b=-inf:0");
  s.text("constraints", &Run::constraints,
         "parameters as formulas of others, b=2*a,c=1-a; a number fixes one", "NAME=FORMULA between commas",
         &print_formulas, &read_formulas)
      .flag("constraint")
      .shown("LIST")
      .parts()
      .example("b=2*a");
  s.option("shared", &Run::shared, "parameters that all data sets have in common").shown("NAMES");
}

std::vector<Choice<std::string>> energies() {
  static const std::vector<std::string> names = mesh_energies();
  std::vector<Choice<std::string>> all;
  for (const std::string& name : names) all.push_back({name, name});
  return all;
}

}  // namespace

void describe(Schema<RunOptions>& s) {
  s.of("solve::RunOptions");
  s.heading("Minimisation");
  s.include(&RunOptions::options);
  add_loss(s);
  add_output(s, "plot", &RunOptions::plot, "cost and gradient over the iterations (.png, .svg)",
             {".png", ".svg"});
  add_shell_flag(s, "verbose", "all iterations in the report instead of ten");
  add_shell_flag(s, "require_convergence", "exit code 1 if no tolerance is reached");
}

void describe(Schema<NistRun>& s) {
  s.of("solve::NistRun");
  add_input(s, "a .dat file of StRD nonlinear regression").required();
  s.option("start", &NistRun::start, "which of the two starts of the file", {{"1", 1}, {"2", 2}});
  s.include_base<RunOptions>();
}

void describe(Schema<FitRun>& s) {
  s.of("solve::FitRun");
  add_input(s, "a CSV file with a header line").required();
  add_fit_model(s);
  s.change("model").required();
  s.change("y").required();
  s.option("absolute_sigma", &FitRun::absolute_sigma,
           "{sigma} is absolute: errors are not scaled by the residuals");
  s.option("correlations", &FitRun::correlations, "correlations of the parameters").effect(Effect::display);
  s.option("profile", &FitRun::profile, "confidence intervals by the profile likelihood");
  s.option("bands", &FitRun::bands,
           "95 % bands of the curve and of new measurements, also in {out} and {picture}");
  s.option("at", &FitRun::at,
           "CSV with the columns of {x}: points at which the curve and {bands} are evaluated")
      .file(Option::Use::input)
      .shown("FILE");
  add_output(s, "curve", &FitRun::curve, "CSV: the points of {at}, the curve and its bands",
             {".csv", ".txt"});
  add_output(s, "out", &FitRun::out, "CSV: the table, fitted values and residuals", {".csv", ".txt"});
  add_output(s, "picture", &FitRun::picture, "data and model (.png, .svg)", {".png", ".svg"});
  add_output(s, "report", &FitRun::report, "a page with parameters, statistics and the picture (.html)",
             {".html"});
  s.include_base<RunOptions>();
  s.useless(
      "absolute_sigma", [](const FitRun& o) { return o.sigma.empty(); }, "it has no effect without {sigma}",
      "{sigma}");
  s.useless(
      "curve", [](const FitRun& o) { return o.at.empty() && !o.at_given; }, "it has no effect without {at}",
      "{at}");
  for (const char* option : {"absolute_sigma", "profile"})
    s.useless(
        option, [](const FitRun& o) { return o.loss.kind != RobustLoss::Kind::none; },
        "it has no meaning with {loss}", "no {loss}");
}

void describe(Schema<PoseGraphRun>& s) {
  s.of("solve::PoseGraphRun");
  add_input(s, "g2o: poses and landmarks in 2 or 3 dimensions, edges between them, FIX").required();
  s.option("start", &PoseGraphRun::start,
           "file: the poses of the file; tree: poses from the edges, breadth first; chordal: from all edges "
           "at once")
      .or_else("tree where the file has no poses");
  add_output(s, "out", &PoseGraphRun::out, "the graph with the optimised poses", {".g2o", ".txt"});
  add_residuals(s);
  s.include_base<RunOptions>();
  add_graduation(s);
  add_parts(s);
}

void describe(Schema<SyntheticScene>& s) {
  s.of("solve::SyntheticScene");
  s.option("cameras", &SyntheticScene::cameras, "cameras of a synthetic scene")
      .at_least(1)
      .at_most(1e15)
      .off(0)
      .shown("CAMERAS");
  s.option("observations", &SyntheticScene::observations, "observations of a synthetic scene")
      .at_least(1)
      .at_most(1e15)
      .off(0)
      .shown("OBSERVATIONS");
  s.group({"synthetic", "{cameras},{observations}", "a ring of cameras around a column instead of a file", "",
           "two whole numbers CAMERAS,OBSERVATIONS", false, ""});
  s.option("seed", &SyntheticScene::seed, "seed of the synthetic scene");
  s.option("noise", &SyntheticScene::noise_px, "standard deviation of synthetic observations")
      .member("noise_px")
      .unit("px")
      .at_least(0)
      .shown("PX");
  s.option("disturbance", &SyntheticScene::disturbance,
           "distance of the synthetic start from the truth, 0: none")
      .at_least(0)
      .at_most(100)
      .shown("X");
  for (const char* option : {"seed", "noise", "disturbance"})
    s.useless(
        option, [](const SyntheticScene& scene) { return scene.cameras == 0; },
        "it has no effect with a file", "{cameras} and {observations}");
  s.needed(
      "observations", [](const SyntheticScene& scene) { return scene.cameras != 0; },
      "cameras without observations", "{observations} too");
  s.useless(
      "observations", [](const SyntheticScene& scene) { return scene.cameras == 0; },
      "observations without cameras", "{cameras} too");
}

void describe(Schema<BundleRun>& s) {
  s.of("solve::BundleRun");
  add_input(s, "a problem in BAL's text format");
  s.include(&BundleRun::synthetic);
  add_output(s, "out", &BundleRun::out, "the problem with the optimised cameras and points", {".txt"});
  add_output(s, "ply", &BundleRun::ply, "points in grey, cameras in red", {".ply"});
  add_residuals(s);
  s.include_base<RunOptions>();
  add_graduation(s);
  add_parts(s);
  s.conflict("file", "cameras");
}

void describe(Schema<MeshPictureRun>& s) {
  s.of("solve::MeshPictureRun");
  s.option("picture", &MeshPictureRun::file, "PNG of the mesh")
      .member("file")
      .file(Option::Use::output_file, {".png"})
      .shown("FILE")
      .effect(Effect::display);
  s.option("color", &MeshPictureRun::color, "colour in the picture").effect(Effect::display);
  s.text("view", &MeshPictureRun::view, "direction from the mesh to the eye",
         "three numbers X,Y,Z, not all 0", &print_direction, &read_direction)
      .shown("X,Y,Z")
      .or_else("from the right and above")
      .parts()
      .example("0,0,1")
      .effect(Effect::display);
  s.option("up", &MeshPictureRun::up, "axis that points up in the picture").effect(Effect::display);
  s.option("width", &MeshPictureRun::width, "width of the picture")
      .unit("pixels")
      .at_least(100)
      .at_most(8192)
      .shown("PX")
      .effect(Effect::display);
  s.option("edges", &MeshPictureRun::edges, "draw the edges of the triangles").effect(Effect::display);
  s.option("smooth", &MeshPictureRun::smooth, "smooth light instead of facets").effect(Effect::display);
  s.option("compare", &MeshPictureRun::compare, "the mesh before and after, next to each other")
      .effect(Effect::display);
  for (const char* option : {"color", "view", "up", "width", "edges", "smooth", "compare"})
    s.useless(
        option, [](const MeshPictureRun& o) { return o.file.empty(); }, "nothing shows it", "{picture} too");
}

void describe(Schema<MeshRun>& s) {
  s.of("solve::MeshRun");
  s.option("mesh", &MeshRun::mesh,
           ".obj, .ply or .stl, or icosphere:LEVEL, dome:LEVEL, grid:RxC, cylinder:AROUNDxALONG, "
           "bar:SIDExLENGTH")
      .flag("FILE")
      .file(Option::Use::input)
      .positional()
      .required();
  s.option("energy", &MeshRun::energy, "the energy; docs/mesh.md has the formulas", energies()).required();
  s.option("fix", &MeshRun::fix, "fixed vertices: 12,20-29,boundary,z<0.1,z>90%,x<0&y<0")
      .parts()
      .shown("SELECTION");
  s.option("handles", &MeshRun::handles,
           "moved vertices, separated by ;: 12=X,Y,Z  z>90%+=DX,DY,DZ  z>90%@AX,AY,AZ,DEG")
      .flag("handle")
      .shown("HANDLES");
  s.option("handles_file", &MeshRun::handles_file, "handles from a file: vertex x y z on each line")
      .flag("handles")
      .file(Option::Use::input)
      .shown("FILE");
  s.option("attach", &MeshRun::attach, "stiffness that pulls vertices to their positions")
      .or_else("0.1 for smooth, else 0")
      .at_least(0)
      .shown("K");
  s.option("stiffness", &MeshRun::stiffness, "stiffness of springs")
      .or_else("1, 100 for cloth")
      .above(0)
      .shown("K");
  s.option("bend", &MeshRun::bend, "stiffness of hinges")
      .or_else("0.09 for bend, 1e-4 for cloth")
      .at_least(0)
      .shown("K");
  s.option("gravity", &MeshRun::gravity, "force per area along -z for cloth").or_else("1").shown("G");
  s.option("rest_scale", &MeshRun::rest_scale,
           "scale of the rest lengths of springs and cloth, relative to the file")
      .or_else("1")
      .above(0)
      .shown("X");
  s.heading("Minimisation");
  s.option("method", &MeshRun::method, "Levenberg-Marquardt, Gauss-Newton, dogleg, …")
      .or_else("by the energy");
  s.heading("");
  s.option("iterations", &MeshRun::iterations, "maximum number of iterations")
      .or_else("200 for cloth and developability, else 100")
      .at_least(0)
      .at_most(1e9)
      .effect(Effect::extent);
  s.option("seed", &MeshRun::seed, "seed of partition-sampled").or_else("0");
  s.option("repair", &MeshRun::repair, "first make the mesh manifold: weld, drop, flip and cut");
  add_output(s, "out", &MeshRun::out, "the optimised mesh: .obj (parameterize: with u, v), .ply or .stl",
             {".obj", ".ply", ".stl"});
  s.include(&MeshRun::picture);
  s.include_base<RunOptions>({"method"});
  s.change("max_iterations").or_else("or by the energy, as {iterations}");
  s.conflict("iterations", "max_iterations");
  for (const char* option : {"color", "compare"})
    s.useless(
        option, [](const MeshRun& o) { return o.energy == "parameterize"; }, "nothing shows it",
        "an {energy} other than parameterize");
  s.prepare([](MeshRun& o, const Given& given) {
    o.options.method = o.method.value_or(usual_method(o.energy));
    if (given.contains("max_iterations")) o.iterations = o.options.max_iterations;
  });
}

void describe(Schema<SketchRun>& s) {
  s.of("solve::SketchRun");
  add_input(s, "a sketch as TOML; docs/sketch.md has the format").required();
  add_output(s, "out", &SketchRun::out,
             "a drawing (.svg, .png), or the same sketch with the computed positions (.toml)",
             {".svg", ".png", ".toml"});
  s.option("allow_conflicts", &SketchRun::allow_conflicts,
           "write the sketch with the least violation of contradicting constraints instead of rejecting it");
  s.include_base<RunOptions>();
}

void describe(Schema<DoctorRun>& s) {
  s.of("solve::DoctorRun");
  add_input(s, "a pose graph (g2o), a problem in BAL's text format, or with {model} a CSV file").required();
  add_fit_model(s);
  s.needed(
      "y", [](const DoctorRun& o) { return !o.model.empty() && o.y.empty(); },
      "a formula without its response", "{y} too");
  for (const char* option : {"others", "x", "y", "sigma", "initial", "bounds", "constraints", "shared"})
    s.useless(
        option, [](const DoctorRun& o) { return o.model.empty(); }, "it has no effect without {model}",
        "{model}");
  add_loss(s);
  add_output(
      s, "influence", &DoctorRun::influence,
      "CSV by instance of a residual: term, instance, line, leverage, studentised residual, Cook's distance",
      {".csv", ".txt"});
  s.option("named", &DoctorRun::named, "findings listed of each kind; counts include all")
      .at_least(1)
      .at_most(1e6)
      .shown("N")
      .effect(Effect::display);
}

std::vector<NamedSchema> schemas() {
  return {{"solve.minimize", &schema_of<Options>()}, {"solve.nist", &schema_of<NistRun>()},
          {"solve.fit", &schema_of<FitRun>()},       {"solve.posegraph", &schema_of<PoseGraphRun>()},
          {"solve.bundle", &schema_of<BundleRun>()}, {"solve.mesh", &schema_of<MeshRun>()},
          {"solve.sketch", &schema_of<SketchRun>()}, {"solve.doctor", &schema_of<DoctorRun>()}};
}

}  // namespace lockstep::solve
