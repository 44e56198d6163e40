// Losses of partial differential equations on a page's arrays, and the shipped equations solved by their gradients.
#include "arrays.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"
#include "options.hpp"
#include "page_context.hpp"

namespace lockstep::web {

namespace {

/// Options of a loss; residual fields are a result here, in place of a file's name.
struct LossOptions : pde::RunOptions {};
void describe(Schema<LossOptions>& s) {
  s.of("pde::RunOptions");
  s.include_base<pde::RunOptions>();
  s.option("residuals", &pde::RunOptions::residuals, "the residual fields too");
}

using Run = pde::RunResult (*)(Context&, const pde::NamedArrays&, const pde::RunOptions&);

Json loss(const Json& request, const char* call, Run run) {
  const pde::NamedArrays given = named_arrays(request, "arrays");
  LossOptions options;
  options.where = call;
  PageContext context(request);
  const auto found = with_options<LossOptions>(
      request, call, [&](const LossOptions& o) { return run(*context, given, o); }, options);
  Json answer = pde::document_of(found);
  answer["gradients"] = handles_of(found.gradients);
  answer["residuals"] = handles_of(found.residuals);
  answer.update(context.status());
  return answer;
}

Json check(const Json& request) {
  constexpr auto kCall = "lockstep.pde.check";
  const pde::NamedArrays given = named_arrays(request, "arrays");
  pde::CheckRunOptions options;
  options.run.where = kCall;
  PageContext context(request);
  Json answer = with_options<pde::CheckRunOptions>(
      request, kCall,
      [&](const pde::CheckRunOptions& o) {
        return document_of(pde::run_check(*context, given, o.run, uint32_t(o.seed)));
      },
      options);
  answer.update(context.status());
  return answer;
}

Json example(const Json& request) {
  PageContext context(request);
  const auto found = with_options<pde::ExampleOptions>(
      request, "lockstep.pde.example",
      [&](const pde::ExampleOptions& o) { return pde::run_example(*context, o); });
  const auto [ny, nx] = found.cells;
  std::vector<std::pair<std::string, Array>> fields;
  for (const auto& [name, values] : found.train.fields)
    fields.emplace_back(name, Array::of(values, {int64_t(values.size()) / (ny * nx), ny, nx}));
  Json answer = pde::document_of(found);
  answer["fields"] = handles_of(fields);
  answer.update(context.status());
  return answer;
}

}  // namespace

void add_loss_calls(Calls& calls) {
  calls["pde_loss"] = [](const Json& r) { return loss(r, "lockstep.pde.loss", &pde::run_loss); };
  calls["pde_trajectory"] = [](const Json& r) {
    return loss(r, "lockstep.pde.trajectory", &pde::run_trajectory);
  };
  calls["pde_check"] = check;
  calls["pde_example"] = example;
  calls["pde_examples"] = [](const Json&) { return Json(pde::example_names()); };
}

}  // namespace lockstep::web
